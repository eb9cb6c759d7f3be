// probectl status: whether the daemon answers, and what it can do.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "client/json_writer.h"
#include "client/lines.h"
#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"
#include "client/words.h"

namespace probed::client {
namespace {

std::vector<std::string_view> Mechanisms(const v1::ServerInfo& info) {
  std::vector<std::string_view> words;
  for (int mechanism : info.mechanisms())
    words.push_back(Word(static_cast<v1::Mechanism>(mechanism)));
  return words;
}

std::string Text(const v1::ServerInfo& info) {
  return fmt::format(
      "probed {} (API {}), pid {}, up {} s\n"
      "  mechanisms   {}\n"
      "  optimization {}\n"
      "  privileges   {}\n"
      "  limits       {} targets, {} probes, {} bytes a string, {} bytes a message\n"
      "  placement    {}\n"
      "  targets      {}\n"
      "  probes       {}\n"
      "  subscribers  {}\n"
      "  events       {}",
      info.version(), fmt::join(info.api_versions(), " "), info.pid(), info.uptime().seconds(),
      fmt::join(Mechanisms(info), " "), info.optimization() ? "on" : "off",
      fmt::join(info.privileges(), "\n               "), info.limits().max_targets(),
      info.limits().max_probes(), info.limits().max_string_bytes(),
      info.limits().max_message_bytes(), info.placement(), info.targets(), info.probes(),
      info.subscribers(), info.events_published());
}

std::string Json(const v1::ServerInfo& info) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("version").String(info.version());
  json.Key("api_versions").BeginArray();
  for (const auto& version : info.api_versions())
    json.String(version);
  json.EndArray();
  json.Key("pid").Signed(info.pid());
  json.Key("uptime_seconds").Signed(info.uptime().seconds());
  json.Key("mechanisms").BeginArray();
  for (auto word : Mechanisms(info))
    json.String(word);
  json.EndArray();
  json.Key("privileges").BeginArray();
  for (const auto& privilege : info.privileges())
    json.String(privilege);
  json.EndArray();
  json.Key("optimization").Bool(info.optimization());
  json.Key("placement").String(info.placement());
  json.Key("targets").Unsigned(info.targets());
  json.Key("probes").Unsigned(info.probes());
  json.Key("subscribers").Unsigned(info.subscribers());
  json.Key("events_published").Unsigned(info.events_published());
  json.Key("max_targets").Unsigned(info.limits().max_targets());
  json.Key("max_probes").Unsigned(info.limits().max_probes());
  json.Key("max_message_bytes").Unsigned(info.limits().max_message_bytes());
  json.Key("max_string_bytes").Unsigned(info.limits().max_string_bytes());
  json.EndObject();
  return line;
}

ExitCode Status(bool json, const Invocation& invocation, Api& api, Talk& talk) {
  auto info = api.GetServerInfo();
  if (!info) return talk.Fail(info.error());
  if (!invocation.quiet) PrintLine(json ? Json(*info) : Text(*info));
  return ExitCode::kOk;
}

}  // namespace

void AddStatus(CLI::App& app, Invocation& invocation) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = AddVerb(app, invocation, "status",
                           "Whether the daemon answers, and what it can do. With --quiet the exit "
                           "status alone tells.",
                           [json, &invocation](Talk& talk) {
                             return WithDaemon(
                                 invocation, talk,
                                 [&](Api& api) { return Status(*json, invocation, api, talk); },
                                 Fallback::kOnRequest);
                           });
  AddJsonOption(*verb, *json);
}

}  // namespace probed::client
