#include "client/verbs/switch_probes.h"

#include <fmt/format.h>

#include <memory>

#include "base/plural.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"

namespace probed::client {
namespace {

struct SwitchOptions {
  TargetOption target;
  std::vector<std::string> probes;
};

ExitCode SwitchProbes(const SwitchOptions& options, Switch wanted, Api& api, Talk& talk) {
  auto parent = FindParent(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  auto changed = ChangeSelected(api, *parent, options.probes, [&](const auto& names) {
    return api.SetProbesEnabled(names, wanted == Switch::kOn);
  });
  if (!changed) return talk.Fail(changed.error());
  talk.Note(fmt::format("{} {}", Plural(changed->size(), "probe"),
                        wanted == Switch::kOn ? "enabled" : "disabled"));
  return ExitCode::kOk;
}

}  // namespace

void AddSwitchVerb(CLI::App& app, Invocation& invocation, const std::string& name,
                   const std::string& description, Switch wanted) {
  auto options = std::make_shared<SwitchOptions>();
  CLI::App* verb =
      AddVerb(app, invocation, name, description, [options, wanted, &invocation](Talk& talk) {
        return WithDaemon(invocation, talk,
                          [&](Api& api) { return SwitchProbes(*options, wanted, api, talk); });
      });
  verb->add_option("PROBE", options->probes, "GROUP/EVENT, EVENT, GROUP/ or a resource name")
      ->required();
  AddTargetOption(*verb, options->target);
}

}  // namespace probed::client
