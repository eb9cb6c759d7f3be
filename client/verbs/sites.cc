// probectl sites: the places in target memory that carry probes.

#include <memory>

#include "client/lines.h"
#include "client/print_probe.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct SiteOptions {
  TargetOption target;
  bool json = false;
};

ExitCode Sites(const SiteOptions& options, Api& api, Talk& talk) {
  auto parent = FindParent(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  auto sites = api.ListSites(*parent);
  if (!sites) return talk.Fail(sites.error());
  for (const auto& site : *sites)
    PrintLine(options.json ? SiteJson(site) : SiteLine(site));
  return ExitCode::kOk;
}

}  // namespace

void AddSites(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<SiteOptions>(
      app, invocation, "sites",
      "List probed addresses in the columns of the kprobes list file, with "
      "mechanism and reason.",
      Sites);
  AddTargetOption(*verb, options->target);
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
