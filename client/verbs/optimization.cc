// probectl optimization: jumps instead of breakpoints, for all targets.

#include <memory>

#include "client/json_writer.h"
#include "client/lines.h"
#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct OptimizationOptions {
  std::string wanted;  // on, off or status
  bool json = false;
};

std::string Json(const v1::ServerInfo& info) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("optimization").Bool(info.optimization());
  json.EndObject();
  return line;
}

ExitCode Optimization(const OptimizationOptions& options, Api& api, Talk& talk) {
  auto info = options.wanted == "status" ? api.GetServerInfo()
                                         : api.SetOptimization(options.wanted == "on");
  if (!info) return talk.Fail(info.error());
  PrintLine(options.json ? Json(*info) : info->optimization() ? "on" : "off");
  return ExitCode::kOk;
}

}  // namespace

void AddOptimization(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<OptimizationOptions>(
      app, invocation, "optimization",
      "Let jumps take the place of breakpoints where that is proven safe: every site of every "
      "target, now and from now on.",
      Optimization);
  verb->add_option("STATE", options->wanted, "on, off or status")
      ->required()
      ->check(OneOf({"on", "off", "status"}));
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
