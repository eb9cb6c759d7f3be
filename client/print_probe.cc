#include "client/print_probe.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/json_writer.h"
#include "client/words.h"
#include "engine/lang/print.h"

namespace probed::client {
namespace {

double Milliseconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) * 1e3 + duration.nanos() / 1e6;
}

std::string Flags(const v1::Site& site) {
  std::string flags;
  if (site.disabled()) flags += "[DISABLED]";
  if (site.gone()) flags += "[GONE]";
  if (site.mechanism() == v1::MECHANISM_OPTIMIZED) flags += "[OPTIMIZED]";
  return flags;
}

// What the site is called where the file has no symbols.
std::string Place(const v1::Site& site) {
  if (!site.symbol().empty()) return site.symbol();
  return fmt::format("{}:0x{:x}", site.module(), site.offset());
}

// A probe that is in no memory has no mechanism.
std::string_view HowItStands(const v1::Probe& probe) {
  return probe.mechanism() == v1::MECHANISM_UNSPECIFIED ? Word(probe.state())
                                                        : Word(probe.mechanism());
}

}  // namespace

std::string ProbeLine(const v1::Probe& probe) {
  std::string line = fmt::format("{}  {}  {}  {}", probe.name(), Word(probe.state()),
                                 Word(probe.mechanism()), probe.definition());
  if (!probe.filter().empty()) line += fmt::format("  if {}", probe.filter());
  for (const auto& trigger : probe.triggers())
    line += fmt::format("  ! {}", trigger);
  if (probe.sampling().every() > 1) line += fmt::format("  1/{}", probe.sampling().every());
  if (probe.sampling().per_second() > 0)
    line += fmt::format("  {}/s", probe.sampling().per_second());
  if (probe.at_ret()) line += "  at ret";
  if (!probe.unseen_returns().empty())
    line += fmt::format(", not counting {}", probe.unseen_returns());
  if (!probe.reason().empty()) line += fmt::format("  ({})", probe.reason());
  return line;
}

std::string ProbeJson(const v1::Probe& probe) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("name").String(probe.name());
  json.Key("group").String(probe.group());
  json.Key("event").String(probe.event());
  json.Key("kind").String(Word(probe.kind()));
  json.Key("definition").String(probe.definition());
  json.Key("path").String(probe.path());
  json.Key("offset").Unsigned(probe.offset());
  json.Key("symbol").String(probe.symbol());
  json.Key("enabled").Bool(probe.enabled());
  json.Key("filter").String(probe.filter());
  json.Key("triggers").BeginArray();
  for (const auto& trigger : probe.triggers())
    json.String(trigger);
  json.EndArray();
  json.Key("sample_every").Unsigned(std::max(probe.sampling().every(), 1u));
  json.Key("rate_limit").Unsigned(probe.sampling().per_second());
  json.Key("at_ret").Bool(probe.at_ret());
  json.Key("unseen_returns").String(probe.unseen_returns());
  json.Key("dialect").String(Word(probe.dialect()));
  json.Key("max_active").Unsigned(probe.max_active());
  json.Key("string_limit").Unsigned(probe.string_limit());
  json.Key("force").Bool(probe.force());
  json.Key("no_optimization").Bool(probe.no_optimization());
  json.Key("state").String(Word(probe.state()));
  json.Key("mechanism").String(Word(probe.mechanism()));
  json.Key("reason").String(probe.reason());
  json.Key("hits").Unsigned(probe.counters().hits());
  json.Key("recorded").Unsigned(probe.counters().recorded());
  json.Key("filtered").Unsigned(probe.counters().filtered());
  json.Key("sampled_out").Unsigned(probe.counters().sampled_out());
  json.Key("missed").Unsigned(probe.counters().missed());
  json.Key("unwound").Unsigned(probe.counters().unwound());
  json.Key("lost").Unsigned(probe.counters().lost());
  json.EndObject();
  return line;
}

std::string SiteLine(const v1::Site& site) {
  std::string line = fmt::format("{:016x}  {}  {}", site.address(),
                                 site.kind() == v1::PROBE_KIND_RETURN ? 'r' : 'k', Place(site));
  if (auto flags = Flags(site); !flags.empty()) line += "  " + flags;
  line += fmt::format("  {}", Word(site.mechanism()));
  if (!site.reason().empty()) line += fmt::format(": {}", site.reason());
  return line;
}

std::string SiteJson(const v1::Site& site) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("target").String(site.target());
  json.Key("address").Unsigned(site.address());
  json.Key("kind").String(Word(site.kind()));
  json.Key("module").String(site.module());
  json.Key("offset").Unsigned(site.offset());
  json.Key("symbol").String(site.symbol());
  json.Key("disabled").Bool(site.disabled());
  json.Key("gone").Bool(site.gone());
  json.Key("mechanism").String(Word(site.mechanism()));
  json.Key("reason").String(site.reason());
  json.Key("hits").Unsigned(site.hits());
  json.Key("probes").BeginArray();
  for (const auto& probe : site.probes())
    json.String(probe);
  json.EndArray().EndObject();
  return line;
}

std::string ProfileLine(const v1::Probe& probe) {
  const auto& counters = probe.counters();
  const std::string& place = probe.path().empty() ? probe.symbol() : probe.path();
  std::string line =
      lang::FormatProfileLine(place, probe.event(), counters.hits()) +
      fmt::format(" {:15} {:15}  {}", counters.missed(), counters.lost(), HowItStands(probe));
  if (counters.unwound() != 0) line += fmt::format("  unwound {}", counters.unwound());
  return line + DroppedOnPurpose(probe);
}

std::string UnwoundOf(const v1::ProbeCounters& counters) {
  return counters.unwound() == 0 ? "" : fmt::format(" ({} unwound)", counters.unwound());
}

std::string DroppedOnPurpose(const v1::Probe& probe) {
  const auto& counters = probe.counters();
  std::string text;
  if (counters.filtered() != 0) text += fmt::format("  filtered {}", counters.filtered());
  if (counters.sampled_out() != 0) text += fmt::format("  sampled out {}", counters.sampled_out());
  return text;
}

std::string TargetLine(const v1::Target& target) {
  std::string line =
      fmt::format("{}  {}  {}  threads {}  sites {}  longest stop {:.3f} ms  {}", target.name(),
                  Word(target.state()), target.comm(), target.threads(), target.sites(),
                  Milliseconds(target.max_stop()), target.executable());
  if (!target.root().empty() && target.root() != target.name()) {
    line += fmt::format("  followed from {}", target.root());
  }
  return line;
}

std::string TargetJson(const v1::Target& target) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("name").String(target.name());
  json.Key("pid").Signed(target.pid());
  json.Key("root").String(target.root());
  json.Key("state").String(Word(target.state()));
  json.Key("comm").String(target.comm());
  json.Key("executable").String(target.executable());
  json.Key("threads").Unsigned(target.threads());
  json.Key("sites").Unsigned(target.sites());
  json.Key("max_stop_ms").Double(Milliseconds(target.max_stop()));
  json.Key("total_stop_ms").Double(Milliseconds(target.total_stop()));
  json.EndObject();
  return line;
}

}  // namespace probed::client
