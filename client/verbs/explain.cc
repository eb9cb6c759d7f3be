// probectl explain: what a probe at a place would be, and why.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/plural.h"
#include "client/json_writer.h"
#include "client/lines.h"
#include "client/typed_places.h"
#include "client/verbs/connect.h"
#include "client/verbs/explain_stats.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"
#include "client/words.h"
#include "engine/lang/place.h"

namespace probed::client {
namespace {

struct ExplainOptions {
  TargetOption target;
  std::string location;
  bool stats = false;
  bool kernel = false;
  bool json = false;
};

std::string Json(const v1::ExplainLocationResponse& place) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("path").String(place.path());
  json.Key("offset").Unsigned(place.offset());
  json.Key("symbol").String(place.symbol());
  json.Key("function_size").Unsigned(place.function_size());
  json.Key("instruction").String(place.instruction());
  json.Key("bytes").String(place.bytes());
  json.Key("on_boundary").Bool(place.on_boundary());
  json.Key("mechanism").String(Word(place.mechanism()));
  json.Key("reason").String(place.reason());
  json.Key("tactic").String(place.tactic());
  json.Key("region").BeginArray();
  for (const std::string& instruction : place.region())
    json.String(instruction);
  json.EndArray();
  json.Key("no_jump").String(place.no_jump());
  json.Key("return_probe").String(place.return_probe());
  json.Key("at_ret").String(place.at_ret());
  json.EndObject();
  return line;
}

std::string Text(const v1::ExplainLocationResponse& place) {
  std::string text = fmt::format("{}:0x{:x}\n", place.path(), place.offset());
  if (!place.symbol().empty()) {
    text += fmt::format("  symbol       {} ({})\n", place.symbol(),
                        Plural(place.function_size(), "byte"));
  }
  if (!place.instruction().empty())
    text += fmt::format("  instruction  {}  [{}]\n", place.instruction(), place.bytes());
  if (!place.on_boundary()) text += "  boundary     no: inside an instruction\n";
  text +=
      fmt::format("  mechanism    {} ({})", Word(place.mechanism()), Meaning(place.mechanism()));
  if (!place.reason().empty()) text += fmt::format("\n  because      {}", place.reason());
  if (!place.tactic().empty()) {
    text +=
        fmt::format("\n  detour by    {} over {}", place.tactic(), fmt::join(place.region(), "; "));
  }
  if (!place.no_jump().empty()) text += fmt::format("\n  no jump      {}", place.no_jump());
  if (!place.return_probe().empty()) text += "\n  return probe " + place.return_probe();
  if (!place.at_ret().empty()) text += "\n  --at-ret     " + place.at_ret();
  return text;
}

std::string PlaceOf(const std::string& location, const std::string& target) {
  const size_t end = std::min(lang::PathEnd(location, lang::Dialect::kExtended), location.size());
  return AbsoluteFile(location.substr(0, end), target) + location.substr(end);
}

ExitCode ExplainFile(const ExplainOptions& options, const std::string& target, Api& api,
                     Talk& talk) {
  v1::ExplainFileRequest request;
  request.set_parent(target);
  request.set_path(AbsoluteFile(options.location, target));
  auto file = api.ExplainFile(request);
  if (!file) return talk.Fail(file.error());
  PrintLine(options.json ? StatsJson(*file) : StatsText(*file));
  return ExitCode::kOk;
}

ExitCode Explain(const ExplainOptions& options, Api& api, Talk& talk) {
  auto target = options.kernel ? kKernelParent : FindTarget(api, options.target);
  if (!target) return talk.Fail(target.error());
  if (options.stats) return ExplainFile(options, *target, api, talk);
  v1::ExplainLocationRequest request;
  request.set_parent(*target);
  request.set_location(options.kernel ? options.location : PlaceOf(options.location, *target));
  auto place = api.ExplainLocation(request);
  if (!place) return talk.Fail(place.error());
  PrintLine(options.json ? Json(*place) : Text(*place));
  return ExitCode::kOk;
}

}  // namespace

void AddExplain(CLI::App& app, Invocation& invocation) {
  auto [verb, options] =
      AddDaemonVerb<ExplainOptions>(app, invocation, "explain",
                                    "Tell what a probe at a place would be, and why.\n"
                                    "Example: probectl explain /usr/bin/bash:readline",
                                    Explain, Fallback::kPrivateDaemon);
  verb->add_option("PLACE", options->location,
                   "PATH:0xOFFSET, PATH:SYMBOL[+OFFSET] or PID:0xADDRESS")
      ->required();
  verb->add_flag("--kernel", options->kernel,
                 "PLACE is in the kernel: [MODULE:]SYMBOL[+OFFSET] or 0xADDRESS");
  verb->add_flag("--stats", options->stats, "Count all places of a file; PLACE is its PATH");
  AddTargetOption(*verb, options->target);
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
