#include "daemon/services/kernel.h"

#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "daemon/access/policy.h"
#include "daemon/convert/page.h"
#include "daemon/convert/status.h"
#include "engine/kernel/kprobes.h"
#include "engine/kernel/place.h"

namespace probed::daemon {
namespace {

grpc::Status CheckAdmin(const Caller& caller) {
  if (caller.admin) return grpc::Status::OK;
  return ToStatus(Error{ErrorCode::kPermissionDenied,
                        "ADMIN_ONLY",
                        "this tells what is in the kernel and what everybody probes there",
                        kAdminHint,
                        {}});
}

v1::InstalledKprobe ToProto(const kernel::InstalledKprobe& probe) {
  v1::InstalledKprobe out;
  out.set_address(probe.address);
  out.set_is_return(probe.is_return);
  out.set_place(probe.place);
  out.set_module(probe.module);
  out.set_gone(probe.gone);
  out.set_disabled(probe.disabled);
  out.set_optimized(probe.optimized);
  out.set_ftrace(probe.ftrace);
  return out;
}

v1::BlacklistedRange ToProto(const kernel::BlacklistedRange& range) {
  v1::BlacklistedRange out;
  out.set_begin(range.begin);
  out.set_end(range.end);
  out.set_symbol(range.symbol);
  return out;
}

std::string ModuleOf(const kernel::KernelFunction& function) {
  return function.module.empty() ? "vmlinux" : function.module;
}

v1::Symbol ToProto(const kernel::Facts& facts, const kernel::KernelFunction& function) {
  v1::Symbol out;
  out.set_name(function.name);
  out.set_module(ModuleOf(function));
  out.set_address(function.address);
  out.set_size(function.size);
  out.set_obstacle(kernel::ObstacleOf(facts, function, 0));
  return out;
}

}  // namespace

grpc::Status KernelService::GetKprobes(grpc::ServerContext*, const v1::GetKprobesRequest*,
                                       v1::Kprobes* response) {
  if (auto status = CheckAdmin(caller_); !status.ok()) return status;
  const auto kprobes = kernel::ReadKprobes();
  if (!kprobes.ok()) return ToStatus(kprobes.error());
  for (const auto& probe : kprobes->installed)
    *response->add_installed() = ToProto(probe);
  for (const auto& range : kprobes->blacklist)
    *response->add_blacklist() = ToProto(range);
  if (kprobes->armed) response->set_armed(*kprobes->armed);
  if (kprobes->optimization) response->set_optimization(*kprobes->optimization);
  return grpc::Status::OK;
}

grpc::Status SearchKernelSymbols(const Caller& caller, const v1::SearchSymbolsRequest& request,
                                 v1::SearchSymbolsResponse& response) {
  if (auto status = CheckAdmin(caller); !status.ok()) return status;
  const std::string pattern = request.pattern().empty() ? "*" : request.pattern();
  const std::string query = "kernel symbols " + pattern;
  const auto page = ParsePage(request.page_size(), request.page_token(), query);
  if (!page.ok()) return ToStatus(page.error());
  const auto facts = kernel::ReadFacts();
  if (!facts.ok()) return ToStatus(facts.error());
  size_t at = page->after ? (*page->after)[0] : 0;  // a symbol's key is its place in the list
  for (; at < facts->functions.size(); ++at) {
    const auto& function = facts->functions[at];
    if (fnmatch(pattern.c_str(), function.name.c_str(), 0) != 0) continue;
    if (static_cast<size_t>(response.symbols_size()) == page->size) break;
    *response.add_symbols() = ToProto(*facts, function);
  }
  if (at < facts->functions.size()) response.set_next_page_token(PageToken({at, 0, 0}, query));
  return grpc::Status::OK;
}

grpc::Status ExplainKernelLocation(const Caller& caller, const std::string& location,
                                   v1::ExplainLocationResponse& response) {
  if (auto status = CheckAdmin(caller); !status.ok()) return status;
  const auto facts = kernel::ReadFacts();
  if (!facts.ok()) return ToStatus(facts.error());
  const auto place = kernel::ExplainPlace(*facts, location);
  if (!place.ok()) return ToStatus(place.error());
  response.set_path(ModuleOf(place->function));
  response.set_offset(place->offset);
  response.set_symbol(place->function.name);
  response.set_function_size(place->function.size);
  response.set_on_boundary(true);  // the kernel itself judges that
  if (place->obstacle.empty()) response.set_mechanism(v1::MECHANISM_KERNEL);
  response.set_reason(place->obstacle);
  return grpc::Status::OK;
}

}  // namespace probed::daemon
