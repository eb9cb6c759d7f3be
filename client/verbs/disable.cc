// probectl disable.

#include "client/verbs/switch_probes.h"
#include "client/verbs/verbs.h"

namespace probed::client {

void AddDisable(CLI::App& app, Invocation& invocation) {
  AddSwitchVerb(app, invocation, "disable",
                "Disable probes, all that are named or none: they stay, but do not fire.",
                Switch::kOff);
}

}  // namespace probed::client
