// probectl list: the probes there are.

#include <memory>
#include <set>

#include "client/lines.h"
#include "client/print_definition.h"
#include "client/print_probe.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct ListOptions {
  TargetOption target;
  bool json = false;
  bool definitions = false;
};

std::string LineOf(const v1::Probe& probe, const ListOptions& options) {
  if (options.json) return ProbeJson(probe);
  return options.definitions ? DefinitionLines(probe) : ProbeLine(probe);
}

// Of targets that have ended the daemon keeps the last counters, which 'profile' shows.
Reply<void> DropEnded(Api& api, std::vector<v1::Probe>& probes) {
  auto targets = api.ListTargets();
  if (!targets) return tl::unexpected(std::move(targets).error());
  std::set<std::string> running;
  for (const auto& target : *targets) {
    if (target.state() != v1::Target::STATE_RUNNING) continue;
    running.insert(target.root().empty() ? target.name() : target.root());
  }
  std::erase_if(probes, [&](const v1::Probe& probe) {
    const std::string target = probe.name().substr(0, probe.name().find("/probes/"));
    return target != *kKernelParent && !running.contains(target);
  });
  return {};
}

ExitCode List(const ListOptions& options, Api& api, Talk& talk) {
  auto parent = FindParent(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  auto probes = api.ListProbes(*parent);
  if (!probes) return talk.Fail(probes.error());
  if (options.target.name.empty())
    if (auto dropped = DropEnded(api, *probes); !dropped) return talk.Fail(dropped.error());
  for (const auto& probe : *probes)
    PrintLine(LineOf(probe, options));
  return ExitCode::kOk;
}

}  // namespace

void AddList(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<ListOptions>(
      app, invocation, "list", "List probes: name, state, mechanism, definition.", List);
  AddTargetOption(*verb, options->target);
  verb->add_flag("--definitions", options->definitions,
                 "Only the definitions, as uprobe_events shows them, for 'define -f'; options of "
                 "'define' that belong to one are in a comment above it");
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
