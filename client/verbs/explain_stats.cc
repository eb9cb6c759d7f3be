#include "client/verbs/explain_stats.h"

#include <fmt/format.h>

#include <map>

#include "base/plural.h"
#include "client/json_writer.h"
#include "client/words.h"

namespace probed::client {
namespace {

struct Counts {
  uint64_t functions = 0;
  uint64_t instructions = 0;

  void Add(const v1::PlanShare& share) {
    functions += share.functions();
    instructions += share.instructions();
  }
};

Counts Total(const v1::ExplainFileResponse& file) {
  Counts total;
  for (const v1::PlanShare& share : file.shares())
    total.Add(share);
  return total;
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string Row(std::string_view mechanism, std::string_view tactic, std::string_view rule,
                const Counts& counts, const Counts& total) {
  return fmt::format("  {:<12} {:<12} {:<22} {:>8} {:6.2f}% {:>9} {:6.2f}%", mechanism, tactic,
                     rule, counts.functions, Percent(counts.functions, total.functions),
                     counts.instructions, Percent(counts.instructions, total.instructions));
}

std::string_view OrDash(const std::string& text) {
  return text.empty() ? std::string_view("-") : std::string_view(text);
}

}  // namespace

std::string StatsText(const v1::ExplainFileResponse& file) {
  Counts total = Total(file);
  std::string text =
      fmt::format("{}: {}, {}\n", file.path(), Plural(total.functions, "exported function"),
                  Plural(total.instructions, "instruction"));
  text += fmt::format("  {:<12} {:<12} {:<22} {:>16} {:>17}", "mechanism", "by", "no plain jump",
                      "function entries", "instructions");
  std::map<v1::Mechanism, Counts> by_mechanism;
  for (const v1::PlanShare& share : file.shares()) {
    Counts counts;
    counts.Add(share);
    by_mechanism[share.mechanism()].Add(share);
    text += '\n' + Row(Word(share.mechanism()), OrDash(share.tactic()), OrDash(share.rule()),
                       counts, total);
  }
  for (const auto& [mechanism, counts] : by_mechanism)
    text += '\n' + Row(Word(mechanism), "in all", "", counts, total);
  for (const auto& [mechanism, counts] : by_mechanism)
    text += fmt::format("\n  {}: {}", Word(mechanism), Meaning(mechanism));
  return text;
}

std::string StatsJson(const v1::ExplainFileResponse& file) {
  Counts total = Total(file);
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("path").String(file.path());
  json.Key("functions").Unsigned(total.functions);
  json.Key("instructions").Unsigned(total.instructions);
  json.Key("shares").BeginArray();
  for (const v1::PlanShare& share : file.shares()) {
    json.BeginObject();
    json.Key("mechanism").String(Word(share.mechanism()));
    json.Key("tactic").String(share.tactic());
    json.Key("rule").String(share.rule());
    json.Key("functions").Unsigned(share.functions());
    json.Key("instructions").Unsigned(share.instructions());
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return line;
}

}  // namespace probed::client
