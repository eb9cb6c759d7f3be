#include "daemon/services/probes.h"

#include <map>

#include "daemon/audit.h"
#include "daemon/convert/page.h"
#include "daemon/convert/probe.h"
#include "daemon/convert/status.h"

namespace probed::daemon {
namespace {

std::vector<event::ProbeId> IdsOf(const std::vector<engine::ProbeInfo>& probes) {
  std::vector<event::ProbeId> ids;
  for (const engine::ProbeInfo& probe : probes)
    ids.push_back(probe.id);
  return ids;
}

Error NoSuchProbe(const ProbeRef& probe) {
  return Error{
      ErrorCode::kNotFound,
      "PROBE_NOT_FOUND",
      "there is no " + ProbeName(probe),
      "'probectl list' shows what there is (ListProbes in the API); a probe goes with its target",
      {{"probe", ProbeName(probe)}}};
}

}  // namespace

grpc::Status ProbeService::CreateProbes(grpc::ServerContext* call,
                                        const v1::CreateProbesRequest* request,
                                        v1::CreateProbesResponse* response) {
  const auto target = ParseTargetName(request->parent());
  if (!target.ok()) return ToStatus(target.error());
  const Status permitted = context_.authorizer.CheckTarget(caller_, *target);
  if (!permitted.ok()) return ToStatus(permitted.error());
  const auto options = ToOptions(*request);
  if (!options.ok()) return ToStatus(options.error());

  const std::vector<std::string> lines(request->definitions().begin(),
                                       request->definitions().end());
  if (engine::NamesKernel(*target, lines, *options)) {
    const Status kernel = context_.authorizer.CheckTarget(caller_, engine::kKernelTarget);
    if (!kernel.ok()) return ToStatus(kernel.error());
  }
  const auto outcome = context_.engine.CreateProbes(*target, lines, *options);
  if (!outcome.ok()) return ToStatus(outcome.error());
  if (!outcome->errors.empty()) return RefusedLines(outcome->errors, lines);

  for (const engine::ProbeInfo& probe : outcome->probes)
    *response->add_probes() = ToProto(probe);
  if (options->validate_only) return grpc::Status::OK;
  context_.sessions.AddProbes({caller_.uid, request->session()}, IdsOf(outcome->probes));
  context_.streams.AddProbes({caller_.uid, request->session()}, IdsOf(outcome->probes));
  AuditProbes("create-probes", outcome->probes, {});
  EndSessionOfGone(*call, context_, caller_, request->session());
  return grpc::Status::OK;
}

Result<engine::ProbeInfo> ProbeService::Find(const ProbeRef& ref) {
  PROBED_RETURN_IF_ERROR(context_.authorizer.CheckTarget(caller_, ref.target));
  auto probe = context_.engine.GetProbe(ref.probe);
  if (!probe.ok() || probe->target != ref.target) return NoSuchProbe(ref);
  return probe;
}

Result<std::vector<engine::ProbeInfo>> ProbeService::FindAll(const Names& names) {
  std::vector<ProbeRef> refs;
  for (const std::string& name : names) {
    PROBED_TRY(const ProbeRef ref, ParseProbeName(name));
    refs.push_back(ref);
  }
  // One question per target instead of one per probe.
  std::map<event::TargetId, std::map<event::ProbeId, engine::ProbeInfo>> known;
  for (const ProbeRef& ref : refs) {
    if (known.contains(ref.target)) continue;
    PROBED_RETURN_IF_ERROR(context_.authorizer.CheckTarget(caller_, ref.target));
    auto& probes = known[ref.target];
    for (auto& probe : context_.engine.ListProbes(ref.target))
      probes.emplace(probe.id, std::move(probe));
  }
  std::vector<engine::ProbeInfo> found;
  for (const ProbeRef& ref : refs) {
    const auto& probes = known[ref.target];
    auto it = probes.find(ref.probe);
    if (it == probes.end() || it->second.target != ref.target) return NoSuchProbe(ref);
    found.push_back(it->second);
  }
  return found;
}

grpc::Status ProbeService::GetProbe(grpc::ServerContext*, const v1::GetProbeRequest* request,
                                    v1::Probe* response) {
  const auto ref = ParseProbeName(request->name());
  if (!ref.ok()) return ToStatus(ref.error());
  const auto probe = Find(*ref);
  if (!probe.ok()) return ToStatus(probe.error());
  *response = ToProto(*probe);
  return grpc::Status::OK;
}

Result<std::optional<event::TargetId>> ProbeService::ListParent(const std::string& parent) {
  PROBED_TRY(const std::optional<event::TargetId> target, ParseParent(parent));
  if (!target) return target;
  PROBED_RETURN_IF_ERROR(context_.authorizer.CheckTarget(caller_, *target));
  if (*target != engine::kKernelTarget) PROBED_RETURN_IF_ERROR(FindTarget(context_, *target));
  return target;
}

grpc::Status ProbeService::ListProbes(grpc::ServerContext*, const v1::ListProbesRequest* request,
                                      v1::ListProbesResponse* response) {
  const std::string query = "probes of " + request->parent();
  const auto page = ParsePage(request->page_size(), request->page_token(), query);
  if (!page.ok()) return ToStatus(page.error());
  const auto parent = ListParent(request->parent());
  if (!parent.ok()) return ToStatus(parent.error());
  std::vector<engine::ProbeInfo> probes = context_.engine.ListProbes(*parent);
  if (!*parent) {
    std::erase_if(probes, [this](const engine::ProbeInfo& probe) {
      return !context_.authorizer.MaySee(caller_, probe.target);
    });
  }
  auto taken = TakePage(std::move(probes), *page, query, [](const engine::ProbeInfo& probe) {
    return PageKey{probe.id, 0, 0};
  });
  for (const engine::ProbeInfo& probe : taken.items)
    *response->add_probes() = ToProto(probe);
  response->set_next_page_token(std::move(taken.next_token));
  return grpc::Status::OK;
}

Result<std::vector<engine::ProbeInfo>> ProbeService::SetEnabled(const Names& names, bool enabled) {
  PROBED_TRY(const std::vector<engine::ProbeInfo> probes, FindAll(names));
  const Status status = context_.engine.SetProbesEnabled(IdsOf(probes), enabled);
  AuditProbes(enabled ? "enable-probes" : "disable-probes", probes, status);
  PROBED_RETURN_IF_ERROR(status);
  return FindAll(names);
}

std::optional<engine::LineError> ProbeService::SetFilter(const engine::ProbeInfo& probe,
                                                         const std::string& filter) {
  auto refused = context_.engine.SetFilter(probe.id, filter);
  AuditProbes("filter-probe", {probe}, refused ? Status(refused->error) : Status());
  return refused;
}

grpc::Status ProbeService::UpdateProbe(grpc::ServerContext*, const v1::UpdateProbeRequest* request,
                                       v1::Probe* response) {
  const auto changes = ToChanges(*request);
  if (!changes.ok()) return ToStatus(changes.error());
  Names names;
  *names.Add() = request->probe().name();
  auto probes = FindAll(names);
  if (!probes.ok()) return ToStatus(probes.error());
  // First what may be refused, so that a request is carried out or not.
  if (changes->filter) {
    const auto refused = SetFilter(probes->front(), *changes->filter);
    if (refused) return Refused(*refused);
  }
  probes = changes->enabled ? SetEnabled(names, *changes->enabled) : FindAll(names);
  if (!probes.ok()) return ToStatus(probes.error());
  *response = ToProto(probes->front());
  return grpc::Status::OK;
}

grpc::Status ProbeService::WriteTrigger(grpc::ServerContext*,
                                        const v1::WriteTriggerRequest* request,
                                        v1::Probe* response) {
  Names names;
  *names.Add() = request->name();
  auto probes = FindAll(names);
  if (!probes.ok()) return ToStatus(probes.error());
  const auto refused = context_.engine.WriteTrigger(probes->front().id, request->trigger());
  AuditProbes("write-trigger", *probes, refused ? Status(refused->error) : Status());
  if (refused) return Refused(*refused);
  probes = FindAll(names);
  if (!probes.ok()) return ToStatus(probes.error());
  *response = ToProto(probes->front());
  return grpc::Status::OK;
}

grpc::Status ProbeService::GetHistogram(grpc::ServerContext*,
                                        const v1::GetHistogramRequest* request,
                                        v1::Histogram* response) {
  const auto ref = ParseProbeName(request->name());
  if (!ref.ok()) return ToStatus(ref.error());
  const auto probe = Find(*ref);
  if (!probe.ok()) return ToStatus(probe.error());
  auto histogram = context_.engine.ReadHistogram(probe->id);
  if (!histogram.ok()) return ToStatus(histogram.error());
  response->set_text(*std::move(histogram));
  return grpc::Status::OK;
}

grpc::Status ProbeService::GetFormat(grpc::ServerContext*, const v1::GetFormatRequest* request,
                                     v1::Format* response) {
  const auto ref = ParseProbeName(request->name());
  if (!ref.ok()) return ToStatus(ref.error());
  const auto probe = Find(*ref);
  if (!probe.ok()) return ToStatus(probe.error());
  auto format = context_.engine.ReadFormat(probe->id);
  if (!format.ok()) return ToStatus(format.error());
  response->set_text(*std::move(format));
  return grpc::Status::OK;
}

grpc::Status ProbeService::SetProbesEnabled(grpc::ServerContext*,
                                            const v1::SetProbesEnabledRequest* request,
                                            v1::SetProbesEnabledResponse* response) {
  const auto probes = SetEnabled(request->names(), request->enabled());
  if (!probes.ok()) return ToStatus(probes.error());
  for (const engine::ProbeInfo& probe : *probes)
    *response->add_probes() = ToProto(probe);
  return grpc::Status::OK;
}

Status ProbeService::Delete(const Names& names) {
  PROBED_TRY(const std::vector<engine::ProbeInfo> probes, FindAll(names));
  Status status = context_.engine.DeleteProbes(IdsOf(probes));
  AuditProbes("delete-probes", probes, status);
  if (status.ok()) context_.sessions.ForgetProbes(IdsOf(probes));
  return status;
}

grpc::Status ProbeService::DeleteProbe(grpc::ServerContext*, const v1::DeleteProbeRequest* request,
                                       google::protobuf::Empty*) {
  Names names;
  *names.Add() = request->name();
  const Status status = Delete(names);
  return status.ok() ? grpc::Status::OK : ToStatus(status.error());
}

grpc::Status ProbeService::DeleteProbes(grpc::ServerContext*,
                                        const v1::DeleteProbesRequest* request,
                                        google::protobuf::Empty*) {
  const Status status = Delete(request->names());
  return status.ok() ? grpc::Status::OK : ToStatus(status.error());
}

grpc::Status ProbeService::ListSites(grpc::ServerContext*, const v1::ListSitesRequest* request,
                                     v1::ListSitesResponse* response) {
  const std::string query = "sites of " + request->parent();
  const auto page = ParsePage(request->page_size(), request->page_token(), query);
  if (!page.ok()) return ToStatus(page.error());
  const auto parent = ListParent(request->parent());
  if (!parent.ok()) return ToStatus(parent.error());
  std::vector<engine::SiteInfo> sites = context_.engine.ListSites(*parent);
  if (!*parent) {
    std::erase_if(sites, [this](const engine::SiteInfo& site) {
      return !context_.authorizer.MaySee(caller_, site.target);
    });
  }
  std::map<event::TargetId, event::TargetId> roots;
  for (const engine::TargetInfo& target : context_.engine.ListTargets())
    roots.emplace(target.id, target.root);
  auto taken = TakePage(std::move(sites), *page, query, [](const engine::SiteInfo& site) {
    return PageKey{static_cast<uint64_t>(site.target.pid), site.target.start_ticks, site.address};
  });
  for (const engine::SiteInfo& site : taken.items) {
    auto root = roots.find(site.target);
    *response->add_sites() = ToProto(site, root == roots.end() ? site.target : root->second);
  }
  response->set_next_page_token(std::move(taken.next_token));
  return grpc::Status::OK;
}

void ProbeService::AuditProbes(std::string_view operation,
                               const std::vector<engine::ProbeInfo>& probes, const Status& status) {
  std::map<event::TargetId, size_t> counts;
  for (const engine::ProbeInfo& probe : probes)
    ++counts[probe.target];
  for (const auto& [target, count] : counts) {
    const auto info = FindTarget(context_, target);
    Audit({caller_, operation, target, info.ok() ? info->executable : "", count,
           status.ok() ? nullptr : &status.error()});
  }
}

}  // namespace probed::daemon
