// probectl explain: what a probe at a place would be, and why.

#include <fmt/format.h>

#include <memory>

#include "client/json_writer.h"
#include "client/lines.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"
#include "client/words.h"

namespace probed::client {
namespace {

struct ExplainOptions {
  TargetOption target;
  std::string location;
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
  json.EndObject();
  return line;
}

std::string Text(const v1::ExplainLocationResponse& place) {
  std::string text = fmt::format("{}:0x{:x}\n", place.path(), place.offset());
  if (!place.symbol().empty()) {
    text += fmt::format("  symbol       {} ({} bytes)\n", place.symbol(), place.function_size());
  }
  text += fmt::format("  instruction  {}  [{}]\n", place.instruction(), place.bytes());
  if (!place.on_boundary()) text += "  boundary     no: inside an instruction\n";
  text += fmt::format("  mechanism    {}", Word(place.mechanism()));
  if (!place.reason().empty()) text += fmt::format("\n  because      {}", place.reason());
  return text;
}

ExitCode Explain(const ExplainOptions& options, Api& api, Talk& talk) {
  auto target = FindTarget(api, options.target);
  if (!target) return talk.Fail(target.error());
  v1::ExplainLocationRequest request;
  request.set_parent(*target);
  request.set_location(options.location);
  auto place = api.ExplainLocation(request);
  if (!place) return talk.Fail(place.error());
  PrintLine(options.json ? Json(*place) : Text(*place));
  return ExitCode::kOk;
}

}  // namespace

void AddExplain(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* verb =
      AddVerb(app, invocation, "explain",
              "Tell what a probe at a place would be, and why.\n"
              "Example: probectl explain /usr/bin/bash:readline",
              [options, &invocation](Talk& talk) {
                // A file can be asked about without anybody's daemon.
                return WithDaemon(
                    invocation, talk, [&](Api& api) { return Explain(*options, api, talk); },
                    Fallback::kPrivateDaemon);
              });
  verb->add_option("PLACE", options->location, "PATH:0xOFFSET or PATH:SYMBOL[+OFFSET]")->required();
  AddTargetOption(*verb, options->target);
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
