// probectl format: what the records of a probe are made of.

#include <memory>

#include "client/lines.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct FormatOptions {
  TargetOption target;
  std::string probe;
};

ExitCode Run(const FormatOptions& options, Api& api, Talk& talk) {
  auto parent = FindParent(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  auto names = SelectProbes(api, *parent, {options.probe});
  if (!names) return talk.Fail(names.error());
  for (const auto& name : *names) {
    auto format = api.GetFormat(name);
    if (!format) return talk.Fail(format.error());
    format->erase(format->find_last_not_of('\n') + 1);
    PrintLine(*format);
  }
  return ExitCode::kOk;
}

}  // namespace

void AddFormat(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<FormatOptions>(
      app, invocation, "format",
      "Show the fields of a probe's records, as the kernel's format files do.\n"
      "Example: probectl format my/alloc",
      Run);
  verb->add_option("PROBE", options->probe, "GROUP/EVENT, EVENT, GROUP/ or a resource name")
      ->required();
  AddTargetOption(*verb, options->target);
}

}  // namespace probed::client
