#include <fmt/format.h>

#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"

namespace probed::engine {
namespace {

void Add(DetachReport& sum, const DetachReport& report) {
  sum.sites_restored += report.sites_restored;
  sum.bytes_verified += report.bytes_verified;
  sum.returns_restored += report.returns_restored;
  if (report.warning.empty()) return;
  sum.warning += (sum.warning.empty() ? "" : "; ") + report.warning;
}

Status CheckRoom(size_t targets, const EngineOptions& options) {
  if (targets < options.max_targets) return {};
  return Error{.code = ErrorCode::kResourceExhausted,
               .reason = "TOO_MANY_TARGETS",
               .message = fmt::format("there are {} targets already", targets),
               .hint = "detach from some, or raise the limit",
               .metadata = {}};
}

}  // namespace

Result<TargetInfo> Engine::Attach(int pid, AttachOptions options) {
  std::lock_guard lock(state_->control);
  return state_->Run([&]() -> Result<TargetInfo> {
    PROBED_RETURN_IF_ERROR(
        CheckRoom(state_->targets.size() - state_->ended.size(), state_->options));
    PROBED_TRY(tracee::Process * process,
               state_->tracer->Attach({.pid = pid,
                                       .follow_children = options.follow_children,
                                       .awaiting_exec = options.awaiting_exec,
                                       .deadline = options.deadline}));
    PROBED_TRY(probe::ProcessState * adopted, state_->controller.Adopt(*process));
    state_->DropOldDefinitions(adopted->id);
    return state_->Describe(*state_->FindTarget(adopted->id));
  });
}

Result<TargetInfo> Engine::Launch(LaunchOptions options) {
  std::lock_guard lock(state_->control);
  return state_->Run([&]() -> Result<TargetInfo> {
    PROBED_RETURN_IF_ERROR(
        CheckRoom(state_->targets.size() - state_->ended.size(), state_->options));
    PROBED_TRY(tracee::Process * process,
               state_->tracer->Launch({.argv = options.argv,
                                       .environment = options.environment,
                                       .working_directory = options.working_directory,
                                       .uid = options.uid,
                                       .gid = options.gid,
                                       .follow_children = options.follow_children}));
    PROBED_TRY(probe::ProcessState * adopted, state_->controller.Adopt(*process));
    state_->DropOldDefinitions(adopted->id);
    return state_->Describe(*state_->FindTarget(adopted->id));
  });
}

Result<void> Engine::Resume(TargetId target) {
  return state_->Run([&]() -> Result<void> {
    Target* found = state_->FindTarget(target);
    if (found == nullptr || found->state == nullptr) return TargetNotFound(target);
    state_->tracer->Resume(found->state->process);
    return {};
  });
}

// A root takes its followed children along: their probes are its own. All of them are leaving
// before the first goes: a child forked meanwhile would be nobody's.
std::vector<probe::ProcessState*> Engine::State::MarkLeaving(const probe::ProbeGroup& group,
                                                             TargetId target) {
  std::vector<probe::ProcessState*> leaving;
  for (probe::ProcessState* state : group.processes) {
    if (target != group.root && target != state->id) continue;
    state->leaving = true;
    controller.optimizer().SyncModes(*state);
    leaving.push_back(state);
  }
  return leaving;
}

Result<DetachReport> Engine::Detach(TargetId target) {
  std::lock_guard lock(state_->control);
  // While the processes run, and record no more: what a flooded ring holds is not read in a stop.
  PROBED_TRY(auto group, state_->Run([&]() -> Result<std::shared_ptr<probe::ProbeGroup>> {
    Target* found = state_->FindTarget(target);
    if (found == nullptr || found->state == nullptr) return TargetNotFound(target);
    state_->MarkLeaving(*found->group, target);
    return found->group;
  }));
  // The reader has its share of the CPUs, beside all threads of a program that has flooded it.
  constexpr std::chrono::seconds kMostReading{2};
  const bool all_read = state_->controller.drainer().FlushFor(kMostReading);
  return state_->Run([&]() -> Result<DetachReport> {
    // Some may have ended meanwhile, the root itself among them.
    auto leaving = state_->MarkLeaving(*group, target);
    if (leaving.empty()) return TargetNotFound(target);
    for (const auto* state : leaving)
      if (!all_read) state_->controller.drainer().Drop(state->source);
    DetachReport sum;
    std::optional<Error> failure;
    size_t ended = 0;
    for (auto* state : leaving) {
      auto report = state_->controller.Detach(*state);
      if (report.ok()) {
        Add(sum, *report);
      } else if (report.error().reason == "PROCESS_GONE") {
        ++ended;
      } else {
        failure = std::move(report).error();
      }
    }
    if (failure) return std::move(*failure);
    if (ended == leaving.size()) return TargetNotFound(target);
    return sum;
  });
}

void Engine::Flush() {
  state_->controller.Flush();
}

std::vector<TargetInfo> Engine::ListTargets() {
  return state_->Run([&] {
    std::vector<TargetInfo> list;
    for (const auto& [id, target] : state_->targets)
      list.push_back(state_->Describe(target));
    return list;
  });
}

}  // namespace probed::engine
