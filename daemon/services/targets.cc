#include "daemon/services/targets.h"

#include <fmt/format.h>

#include "daemon/audit.h"
#include "daemon/convert/names.h"
#include "daemon/convert/page.h"
#include "daemon/convert/status.h"
#include "daemon/convert/target.h"

namespace probed::daemon {
namespace {

PageKey KeyOf(const engine::TargetInfo& target) {
  return {static_cast<uint64_t>(target.id.pid), target.id.start_ticks, 0};
}

grpc::Status Answer(const Result<engine::TargetInfo>& target, v1::Target* response) {
  if (!target.ok()) return ToStatus(target.error());
  *response = ToProto(*target);
  return grpc::Status::OK;
}

const Error* ErrorOf(const Result<engine::TargetInfo>& result) {
  return result.ok() ? nullptr : &result.error();
}

}  // namespace

grpc::Status TargetService::AttachTarget(grpc::ServerContext* call,
                                         const v1::AttachTargetRequest* request,
                                         v1::Target* response) {
  const auto target = Attach(*request);
  Audit({caller_, "attach", target.ok() ? target->id : event::TargetId{request->pid(), 0},
         target.ok() ? target->executable : "", 0, ErrorOf(target)});
  EndSessionOfGone(*call, context_, caller_, request->session());
  return Answer(target, response);
}

Result<engine::TargetInfo> TargetService::Attach(const v1::AttachTargetRequest& request) {
  PROBED_TRY(const engine::AttachOptions options, ToOptions(request));
  PROBED_TRY(const event::TargetId target,
             context_.authorizer.CheckProcess(caller_, request.pid()));
  PROBED_TRY(engine::TargetInfo info,
             context_.sessions.Hold(
                 {caller_.uid, request.session()}, [&] { return Join(target, options); },
                 [&](const engine::TargetInfo& attached) { return Verify(attached, target); }));
  context_.authorizer.Remember(info.id, caller_);
  context_.streams.AddTarget({caller_.uid, request.session()}, info.id);
  return info;
}

Result<engine::TargetInfo> TargetService::Join(event::TargetId target,
                                               const engine::AttachOptions& options) {
  auto existing = FindTarget(context_, target);
  if (existing.ok() && existing->state == engine::TargetState::kRunning) return existing;
  auto attached = context_.engine.Attach(target.pid, options);
  if (attached.ok()) context_.boot.DefineIn(context_.engine, attached->id);
  return attached;
}

// Between the check and the attach the pid may have gone to another process, or the process may
// have become one that the caller must not trace (a set-user-id exec); a seized one cannot change
// unseen.
Status TargetService::Verify(const engine::TargetInfo& attached, event::TargetId wanted) {
  if (attached.id != wanted)
    return Error{ErrorCode::kNotFound,
                 "PROCESS_GONE",
                 fmt::format("process {} ended and its id was used again", wanted.pid),
                 "",
                 {}};
  return context_.authorizer.CheckTarget(caller_, wanted);
}

grpc::Status TargetService::LaunchTarget(grpc::ServerContext* call,
                                         const v1::LaunchTargetRequest* request,
                                         v1::Target* response) {
  const auto target = Launch(*request);
  Audit({caller_, "launch", target.ok() ? target->id : event::TargetId{},
         target.ok() ? target->executable : "", 0, ErrorOf(target)});
  EndSessionOfGone(*call, context_, caller_, request->session());
  return Answer(target, response);
}

Result<engine::TargetInfo> TargetService::Launch(const v1::LaunchTargetRequest& request) {
  PROBED_TRY(const engine::LaunchOptions options, ToOptions(request, caller_));
  PROBED_TRY(engine::TargetInfo target,
             context_.sessions.Hold(
                 {caller_.uid, request.session()}, [&] { return context_.engine.Launch(options); },
                 [](const engine::TargetInfo&) { return Status(); }));
  context_.authorizer.Remember(target.id, caller_);
  context_.boot.DefineIn(context_.engine, target.id);
  return target;
}

Result<engine::TargetInfo> TargetService::Find(const std::string& name) {
  PROBED_TRY(const event::TargetId target, ParseTargetName(name));
  PROBED_RETURN_IF_ERROR(context_.authorizer.CheckTarget(caller_, target));
  return FindTarget(context_, target);
}

grpc::Status TargetService::ResumeTarget(grpc::ServerContext*,
                                         const v1::ResumeTargetRequest* request,
                                         v1::Target* response) {
  auto target = Find(request->name());
  if (!target.ok()) return ToStatus(target.error());
  const Status resumed = context_.engine.Resume(target->id);
  if (!resumed.ok()) return ToStatus(resumed.error());
  *response = ToProto(*target);
  return grpc::Status::OK;
}

grpc::Status TargetService::DetachTarget(grpc::ServerContext*,
                                         const v1::DetachTargetRequest* request,
                                         v1::DetachTargetResponse* response) {
  const auto target = Find(request->name());
  if (!target.ok()) return ToStatus(target.error());
  auto left = Detach(target->id, request->session());
  Audit(
      {caller_, "detach", target->id, target->executable, 0, left.ok() ? nullptr : &left.error()});
  if (!left.ok()) return ToStatus(left.error());
  *response = *std::move(left);
  return grpc::Status::OK;
}

Result<v1::DetachTargetResponse> TargetService::Detach(event::TargetId target,
                                                       const std::string& session) {
  PROBED_TRY(const Sessions::Left left, context_.sessions.Leave(target, {caller_.uid, session}));
  if (!left.detached) return v1::DetachTargetResponse();
  context_.authorizer.Forget(target);
  return ToProto(left.report);
}

grpc::Status TargetService::GetTarget(grpc::ServerContext*, const v1::GetTargetRequest* request,
                                      v1::Target* response) {
  return Answer(Find(request->name()), response);
}

grpc::Status TargetService::ListTargets(grpc::ServerContext*, const v1::ListTargetsRequest* request,
                                        v1::ListTargetsResponse* response) {
  constexpr std::string_view kQuery = "targets";
  const auto page = ParsePage(request->page_size(), request->page_token(), kQuery);
  if (!page.ok()) return ToStatus(page.error());
  std::vector<engine::TargetInfo> targets = context_.engine.ListTargets();
  std::erase_if(targets, [this](const engine::TargetInfo& target) {
    return !context_.authorizer.MaySee(caller_, target.id);
  });
  auto taken = TakePage(std::move(targets), *page, kQuery, KeyOf);
  for (const engine::TargetInfo& target : taken.items)
    *response->add_targets() = ToProto(target);
  response->set_next_page_token(std::move(taken.next_token));
  return grpc::Status::OK;
}

}  // namespace probed::daemon
