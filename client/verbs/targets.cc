// probectl targets: what the daemon is attached to.

#include <memory>

#include "client/lines.h"
#include "client/print_probe.h"
#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

ExitCode Targets(bool json, Api& api, Talk& talk) {
  auto targets = api.ListTargets();
  if (!targets) return talk.Fail(targets.error());
  for (const auto& target : *targets) {
    // Those that ended or were let go are remembered for their probes' last counters only.
    if (target.state() != v1::Target::STATE_RUNNING) continue;
    PrintLine(json ? TargetJson(target) : TargetLine(target));
  }
  return ExitCode::kOk;
}

}  // namespace

void AddTargets(CLI::App& app, Invocation& invocation) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = AddVerb(app, invocation, "targets", "List the processes that are attached.",
                           [json, &invocation](Talk& talk) {
                             return WithDaemon(invocation, talk,
                                               [&](Api& api) { return Targets(*json, api, talk); });
                           });
  AddJsonOption(*verb, *json);
}

}  // namespace probed::client
