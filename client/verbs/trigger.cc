// probectl trigger: what the kernel does when an event of its own is hit.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "client/lines.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

constexpr char kParent[] = "targets/kernel";

struct TriggerOptions {
  std::string probe;
  std::vector<std::string> trigger;  // none: show them
  bool histogram = false;
};

ExitCode Show(const std::vector<std::string>& names, const std::vector<v1::Probe>& probes) {
  for (const auto& probe : probes) {
    if (std::find(names.begin(), names.end(), probe.name()) == names.end()) continue;
    for (const auto& trigger : probe.triggers())
      PrintLine(names.size() == 1 ? trigger : fmt::format("{}  {}", probe.name(), trigger));
  }
  return ExitCode::kOk;
}

ExitCode ShowHistograms(const std::vector<std::string>& names, Api& api, Talk& talk) {
  for (const auto& name : names) {
    auto histogram = api.GetHistogram(name);
    if (!histogram) return talk.Fail(histogram.error());
    histogram->erase(histogram->find_last_not_of('\n') + 1);
    PrintLine(*histogram);
  }
  return ExitCode::kOk;
}

Error NotInTheKernel(const std::string& probe) {
  return {.code = ErrorCode::kFailedPrecondition,
          .reason = "NOT_IN_KERNEL",
          .message = probe + " is no probe in the kernel, and triggers are the kernel's",
          .hint = "--mechanism kernel makes it one; 'probectl filter' is for all probes",
          .metadata = {}};
}

ExitCode Run(const TriggerOptions& options, Api& api, Talk& talk) {
  auto names = SelectProbes(api, kParent, {options.probe});
  if (!names && SelectProbes(api, "targets/-", {options.probe}))
    return talk.Fail(NotInTheKernel(options.probe));
  if (!names) return talk.Fail(names.error());
  if (options.histogram) return ShowHistograms(*names, api, talk);
  if (options.trigger.empty()) {
    auto probes = api.ListProbes(kParent);
    return probes ? Show(*names, *probes) : talk.Fail(probes.error());
  }
  for (const auto& name : *names) {
    auto written = api.WriteTrigger(name, options.trigger.front());
    if (!written) return talk.Fail(written.error());
  }
  return ExitCode::kOk;
}

}  // namespace

void AddTrigger(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<TriggerOptions>(
      app, invocation, "trigger",
      "Have the kernel do something at the hits of a probe in it, or show what it does.\n"
      "Example: probectl trigger sched_switch 'traceoff:1 if prev_pid == 1234'",
      Run);
  verb->add_option("PROBE", options->probe, "GROUP/EVENT, EVENT, GROUP/ or a resource name")
      ->required();
  verb->add_option("TRIGGER", options->trigger,
                   "A line of the kernel's trigger files; with ! in front it is taken away")
      ->expected(0, 1);
  verb->add_flag("--hist", options->histogram,
                 "Show what its hist triggers have counted until now");
}

}  // namespace probed::client
