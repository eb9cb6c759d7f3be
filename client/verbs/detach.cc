// probectl detach: give targets back.

#include <fmt/format.h>

#include <memory>

#include "base/plural.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct DetachOptions {
  std::vector<int> pids;
  std::vector<std::string> targets;
  bool all = false;

  bool names_nothing() const { return pids.empty() && targets.empty() && !all; }
};

Error NothingNamed() {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "NO_TARGET_NAMED",
          .message = "detach needs to know which target to let go of",
          .hint = "--pid PID, --target NAME or --all; 'probectl targets' lists them",
          .metadata = {}};
}

ExitCode DetachOne(const std::string& name, Api& api, Talk& talk) {
  v1::DetachTargetRequest request;
  request.set_name(name);
  auto report = api.DetachTarget(request);
  if (!report) return talk.Fail(report.error());
  talk.Note(fmt::format("{}: {} restored, {} verified, {} put back", name,
                        Plural(report->sites_restored(), "site"),
                        Plural(report->bytes_verified(), "byte"),
                        Plural(report->returns_restored(), "return address")));
  if (!report->warning().empty()) talk.Warn(report->warning());
  return report->warning().empty() ? ExitCode::kOk : ExitCode::kFailure;
}

// Followed children go with the target they belong to.
Reply<std::vector<std::string>> AllTargets(Api& api) {
  auto targets = api.ListTargets();
  if (!targets) return tl::unexpected(targets.error());
  std::vector<std::string> names;
  for (const auto& target : *targets) {
    if (target.root().empty() || target.root() == target.name()) names.push_back(target.name());
  }
  return names;
}

ExitCode Detach(const DetachOptions& options, Api& api, Talk& talk) {
  ExitCode failed = ExitCode::kOk;
  size_t done = 0;
  auto count = [&](ExitCode code) {
    if (code == ExitCode::kOk)
      ++done;
    else if (failed == ExitCode::kOk)
      failed = code;
  };
  std::vector<std::string> names = options.targets;
  if (options.all) {
    auto all = AllTargets(api);
    if (!all) return talk.Fail(all.error());
    names = *all;
  }
  for (int pid : options.pids) {
    auto name = FindTarget(api, {.pid = pid, .name = {}});
    if (name) {
      names.push_back(*name);
    } else {
      if (name.error().error.reason == kNotAttached)
        name.error().error.hint =
            "nothing of ours is in it; 'probectl targets' lists what is attached";
      count(talk.Fail(name.error()));
    }
  }
  for (const auto& name : names)
    count(DetachOne(name, api, talk));
  return failed != ExitCode::kOk && done != 0 ? ExitCode::kPartial : failed;
}

}  // namespace

void AddDetach(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<DetachOptions>();
  CLI::App* verb = AddVerb(
      app, invocation, "detach", "Let go of targets: every byte is restored and verified.",
      [options, &invocation](Talk& talk) {
        if (options->names_nothing()) return static_cast<int>(talk.Fail(NothingNamed()));
        return WithDaemon(invocation, talk, [&](Api& api) { return Detach(*options, api, talk); });
      });
  AddPidsOption(*verb, options->pids, "Process ids, separated by commas");
  verb->add_option("--target", options->targets, "Resource names: targets/PID-START")
      ->type_name("NAME");
  verb->add_flag("--all", options->all, "Every target")->excludes("--pid")->excludes("--target");
}

}  // namespace probed::client
