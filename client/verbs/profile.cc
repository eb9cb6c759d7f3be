// probectl profile: the counters of each probe, in uprobe_profile's shape.

#include <memory>

#include "client/lines.h"
#include "client/print_probe.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct ProfileOptions {
  TargetOption target;
  bool json = false;
};

ExitCode Profile(const ProfileOptions& options, Api& api, Talk& talk) {
  auto parent = FindParent(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  auto probes = api.ListProbes(*parent);
  if (!probes) return talk.Fail(probes.error());
  for (const auto& probe : *probes)
    PrintLine(options.json ? ProbeJson(probe) : ProfileLine(probe));
  return ExitCode::kOk;
}

}  // namespace

void AddProfile(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<ProfileOptions>(
      app, invocation, "profile",
      "Counters of each probe: path, event, hits, missed, lost, mechanism.", Profile);
  AddTargetOption(*verb, options->target);
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
