// probectl delete: take probes out, all that were named or none.

#include <memory>

#include "base/plural.h"
#include "client/typed_places.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct DeleteOptions {
  TargetOption target;
  std::vector<std::string> probes;
};

ExitCode Delete(const DeleteOptions& options, Api& api, Talk& talk) {
  auto parent = FindParent(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  std::vector<std::string> selectors;
  for (const auto& probe : options.probes)
    selectors.push_back(AbsoluteLine(probe, lang::Dialect::kExtended));
  size_t count = 0;
  auto deleted = ChangeSelected(api, *parent, selectors, [&](const auto& names) {
    count = names.size();
    return api.DeleteProbes(names);
  });
  if (!deleted) return talk.Fail(deleted.error());
  talk.Note(Plural(count, "probe") + " deleted");
  return ExitCode::kOk;
}

Error NothingNamed() {
  return {
      .code = ErrorCode::kInvalidArgument,
      .reason = "NO_PROBE_NAMED",
      .message = "delete needs the name of a probe",
      .hint = "GROUP/EVENT, EVENT, GROUP/, a resource name, or a deletion line like -:GROUP/EVENT",
      .metadata = {}};
}

// CLI11 takes "-:group/event" for options it does not know; they are what is left over.
int Run(DeleteOptions& options, const CLI::App& verb, const Invocation& invocation, Talk& talk) {
  for (const auto& word : verb.remaining()) {
    if (word == "--") continue;
    if (!word.starts_with("-:")) {
      return static_cast<int>(talk.Fail(Error{.code = ErrorCode::kInvalidArgument,
                                              .reason = "UNKNOWN_OPTION",
                                              .message = "delete has no option " + word,
                                              .hint = "probectl delete --help",
                                              .metadata = {}}));
    }
    options.probes.push_back(word);
  }
  if (options.probes.empty()) return static_cast<int>(talk.Fail(NothingNamed()));
  return WithDaemon(invocation, talk, [&](Api& api) { return Delete(options, api, talk); });
}

}  // namespace

void AddDelete(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<DeleteOptions>();
  CLI::App* verb = AddVerb(app, invocation, "delete",
                           "Delete probes, all that are named or none.\n"
                           "Example: probectl delete redis/cmd -:redis/cmd_ret",
                           nullptr);
  verb->allow_extras();
  verb->callback([options, verb, &invocation] {
    invocation.action = [options, verb, &invocation](Talk& talk) {
      return Run(*options, *verb, invocation, talk);
    };
  });
  verb->add_option("PROBE", options->probes,
                   "GROUP/EVENT, EVENT, GROUP/, a resource name, or -:GROUP/EVENT [PLACE [ARGS]]");
  AddTargetOption(*verb, options->target);
}

}  // namespace probed::client
