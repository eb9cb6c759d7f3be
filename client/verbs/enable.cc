// probectl enable.

#include "client/verbs/switch_probes.h"
#include "client/verbs/verbs.h"

namespace probed::client {

void AddEnable(CLI::App& app, Invocation& invocation) {
  AddSwitchVerb(app, invocation, "enable", "Enable probes, all that are named or none.",
                Switch::kOn);
}

}  // namespace probed::client
