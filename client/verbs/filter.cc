// probectl filter: which hits of a probe are recorded.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/plural.h"
#include "client/json_writer.h"
#include "client/lines.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct FilterOptions {
  TargetOption target;
  std::string probe;
  std::vector<std::string> expression;  // none: show the filter
};

Error NotUtf8() {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "NOT_UTF8",
          .message = "the filter is not UTF-8",
          .hint = "the API carries UTF-8 only",
          .metadata = {}};
}

// As the kernel's `filter` file reads, after the name when there are several.
ExitCode Show(const std::vector<std::string>& names, const std::vector<v1::Probe>& probes) {
  for (const auto& probe : probes) {
    if (std::find(names.begin(), names.end(), probe.name()) == names.end()) continue;
    const std::string filter = probe.filter().empty() ? "none" : probe.filter();
    PrintLine(names.size() == 1 ? filter : fmt::format("{}  {}", probe.name(), filter));
  }
  return ExitCode::kOk;
}

// One after the other: events differ in their fields, and what one refuses may suit the next.
ExitCode Set(const std::vector<std::string>& names, const std::string& filter, Api& api,
             Talk& talk) {
  ExitCode worst = ExitCode::kOk;
  size_t set = 0;
  for (const auto& name : names) {
    auto changed = api.SetFilter(name, filter);
    if (changed) {
      ++set;
    } else if (IsDeleted(changed.error()) && names.size() > 1) {
      talk.Note("one of them has been deleted meanwhile");
    } else {
      worst = talk.Fail(changed.error());
    }
  }
  if (set > 0)
    talk.Note(
        fmt::format("{} {}", Plural(set, "probe"), filter == "0" ? "unfiltered" : "filtered"));
  return worst != ExitCode::kOk && set > 0 ? ExitCode::kPartial : worst;
}

ExitCode Run(const FilterOptions& options, Api& api, Talk& talk) {
  auto parent = FindParent(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  auto names = SelectProbes(api, *parent, {options.probe});
  if (!names) return talk.Fail(names.error());
  if (!options.expression.empty()) return Set(*names, options.expression.front(), api, talk);
  auto probes = api.ListProbes(*parent);
  return probes ? Show(*names, *probes) : talk.Fail(probes.error());
}

}  // namespace

void AddFilter(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<FilterOptions>();
  CLI::App* verb = AddVerb(
      app, invocation, "filter",
      "Record only those hits of a probe that pass a filter, or show the filter.\n"
      "Example: probectl filter my/alloc 'size > 4096 && COMM ~ \"redis*\"'",
      [options, &invocation](Talk& talk) {
        const auto& expression = options->expression;
        if (!expression.empty() && !IsUtf8(expression.front())) {
          return static_cast<int>(talk.Fail(NotUtf8()));
        }
        return WithDaemon(invocation, talk, [&](Api& api) { return Run(*options, api, talk); });
      });
  verb->add_option("PROBE", options->probe, "GROUP/EVENT, EVENT, GROUP/ or a resource name")
      ->required();
  verb->add_option("EXPR", options->expression,
                   "In the language of the kernel's event filters; 0 takes the filter away")
      ->expected(0, 1);
  AddTargetOption(*verb, options->target);
}

}  // namespace probed::client
