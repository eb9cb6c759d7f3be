// probectl define: probes in a target that is attached already, all of them or none.

#include <memory>

#include "client/lines.h"
#include "client/print_probe.h"
#include "client/unseen_returns.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct DefineOptions {
  TargetOption target;
  DefinitionOptions definitions;
  bool disabled = false;
  bool dry_run = false;
  bool json = false;
};

ExitCode Define(const DefineOptions& options, Api& api, Talk& talk) {
  if (!options.definitions.are_given()) return talk.Fail(NothingDefined());
  auto lines = options.definitions.Lines();
  if (!lines.ok()) return talk.Fail(lines.error());
  auto target = FindTarget(api, options.target);
  if (!target) return talk.Fail(target.error());
  v1::CreateProbesRequest request = options.definitions.Request(*lines);
  request.set_parent(target->empty() ? "targets/kernel" : *target);
  request.set_disabled(options.disabled);
  request.set_validate_only(options.dry_run);
  auto created = api.CreateProbes(request);
  if (!created) return talk.Fail(options.definitions.AsTyped(*lines, "", created.error()));
  UnseenReturns(talk).WarnOf(*created);
  for (const auto& probe : created->probes()) {
    PrintLine(options.json ? ProbeJson(probe) : ProbeLine(probe));
  }
  return ExitCode::kOk;
}

}  // namespace

void AddDefine(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<DefineOptions>(
      app, invocation, "define",
      "Define probes in an attached target, or without one in the kernel: all lines or none. They "
      "stay until 'delete' or 'detach'.",
      Define);
  AddTargetOption(*verb, options->target);
  AddDefinitionOptions(*verb, options->definitions);
  AddRequireArmedOption(*verb, options->definitions);
  verb->add_flag("--disabled", options->disabled, "Create disabled; see 'enable'");
  verb->add_flag("--dry-run", options->dry_run, "Judge and plan, change nothing");
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
