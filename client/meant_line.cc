#include "client/meant_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>
#include <utility>

#include "engine/lang/line.h"
#include "engine/lang/path_escape.h"

namespace probed::client {
namespace {

using lang::LineDestination;

// bpftrace's names of uprobes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKinds = {{
    {"uprobe:", "p "},
    {"u:", "p "},
    {"uretprobe:", "r "},
    {"ur:", "r "},
}};

constexpr char kOfSourceLines[] =
    "PATH:SYMBOL+OFFSET, as lines of source are not known here; of a program with debug "
    "information gdb -batch -ex 'info line FILE:LINE' PATH tells it";

constexpr char kOfForms[] =
    "p:GROUP/EVENT PATH:SYMBOL, r:... for returns; GROUP:EVENT is an event of the kernel's";

bool IsOfAProbe(const std::string& kind) {
  return kind[0] == 'p' || kind[0] == 'r';
}

// Letters, digits, and what may stand in front of the '/' of a group.
bool IsName(std::string_view word) {
  return !word.empty() && (word[0] == '_' || std::isalpha(static_cast<unsigned char>(word[0]))) &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("_-/.").find(c) != std::string_view::npos;
         });
}

// /usr/bin/bash:readline, bash:readline; not the type of n=%di:u64.
bool IsPlace(std::string_view token) {
  const size_t colon = token.rfind(':');
  return colon != std::string_view::npos && colon > 0 && colon + 1 < token.size() &&
         std::string_view("-%$+@\\").find(token[0]) == std::string_view::npos &&
         token.substr(0, colon).find('=') == std::string_view::npos;
}

// A place that names a file beyond doubt; GROUP:EVENT and q:name look the same.
bool IsPlaceInAFile(std::string_view token, std::string_view program) {
  if (!IsPlace(token)) return false;
  const std::string_view path = token.substr(0, token.rfind(':'));
  return path.find_first_of("/.") != std::string_view::npos ||
         (!program.empty() && path == program.substr(program.rfind('/') + 1));
}

// p my/work /bin/prog:work, p: my/work /bin/prog:work: a name without its colon, or away from it.
std::string WithColon(std::vector<std::string> tokens) {
  const std::string_view digits = std::string_view(tokens[0]).substr(1);
  const bool is_kind =
      IsOfAProbe(tokens[0]) && digits.find_first_not_of("0123456789:") == std::string_view::npos;
  if (!is_kind || tokens.size() < 3) return {};
  const std::string name = tokens[1].substr(tokens[1].find_first_not_of(':') == 1 ? 1 : 0);
  if (!IsName(name) || !IsPlace(tokens[2])) return {};
  tokens[0] += (tokens[0].ends_with(':') ? "" : ":") + name;
  tokens.erase(tokens.begin() + 1);
  return lang::JoinTokens(tokens);
}

// p:my/work /opt/my prog:work: a blank in the path.
std::string WithEscape(std::vector<std::string> tokens) {
  if (tokens.size() < 3 || !IsOfAProbe(tokens[0])) return {};
  std::string& place = tokens[1];
  const bool is_begun = (place[0] == '/' || place.starts_with("./") || place.starts_with("../")) &&
                        place.find(':') == std::string::npos;
  const auto end = std::find_if(tokens.begin() + 2, tokens.end(), IsPlace);
  if (!is_begun || end == tokens.end()) return {};
  for (auto word = tokens.begin() + 2; word <= end; ++word)
    place += lang::EscapePath(" ") + *word;
  tokens.erase(tokens.begin() + 2, end + 1);
  return lang::JoinTokens(tokens);
}

// q:my/work /bin/prog:work, my/work /bin/prog:work: another kind, or none, in front of a place.
std::string WithKind(std::vector<std::string> tokens, const std::string& program) {
  if (tokens.size() < 2 || !IsPlaceInAFile(tokens[1], program)) return {};
  const std::string_view name = std::string_view(tokens[0]).substr(tokens[0].find(':') + 1);
  if (!IsName(name)) return {};
  const bool is_return = std::tolower(static_cast<unsigned char>(tokens[0][0])) == 'r';
  tokens[0] = (is_return ? "r:" : "p:") + std::string(name);
  return lang::JoinTokens(tokens);
}

// p:/bin/prog:work: a place where the name would be.
std::string WithBlank(const std::vector<std::string>& tokens, const std::string& program) {
  const bool is_alone = tokens.size() == 1 && IsOfAProbe(tokens[0]) && tokens[0][1] == ':';
  const std::string place = is_alone ? tokens[0].substr(2) : "";
  return IsPlaceInAFile(place, program) ? tokens[0].substr(0, 1) + " " + place : "";
}

// 0x12, which alone is an address of the kernel's; those that the kernel has are longer.
bool IsFileOffset(const std::string& place) {
  constexpr size_t kMostDigits = 12;
  return place.starts_with("0x") && place.size() <= 2 + kMostDigits &&
         place.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
}

// sched/sched_switch and sched_switch, where no process is named: events of the kernel's.
std::string AsEvent(const std::vector<std::string>& tokens) {
  if (tokens.size() != 1 || !IsName(tokens[0])) return {};
  const size_t slash = tokens[0].find('/');
  if (slash == std::string::npos) return "*:" + tokens[0];
  return tokens[0].substr(0, slash) + ":" + tokens[0].substr(slash + 1);
}

// sched:sched_switch,sched:sched_wakeup, as perf has it.
std::string EachOfItsOwn(const std::string& line) {
  std::istringstream parts(line);
  std::string hint = "one -e for each:";
  for (std::string part; std::getline(parts, part, ',');)
    hint += fmt::format(" -e '{}'", part);
  return hint;
}

// p:my/work work: a function without its file is the kernel's.
std::string WithProgram(std::vector<std::string> tokens, const std::string& program) {
  std::string& place = tokens[1];
  const bool is_name =
      place.find_first_of("/:") == std::string::npos &&
      (place[0] == '_' || std::isalpha(static_cast<unsigned char>(place[0])) != 0 ||
       IsFileOffset(place));
  if (!is_name || (tokens.size() > 2 && IsPlaceInAFile(tokens[2], program))) return {};
  place = (program.empty() ? "PATH" : lang::EscapePath(program)) + ":" + place;
  return lang::JoinTokens(tokens);
}

// p:my/work prog:work, where nothing is mapped yet: the program that is about to be run.
std::string WithPath(std::vector<std::string> tokens, const std::string& program) {
  if (tokens.size() < 2 || program.empty()) return {};
  std::string& place = tokens[1];
  const size_t colon = place.find(':');
  if (place.substr(0, colon) != program.substr(program.rfind('/') + 1)) return {};
  place = lang::EscapePath(program) + place.substr(std::min(colon, place.size()));
  return lang::JoinTokens(tokens);
}

// bpftrace's filters and actions have no place in a definition.
std::vector<std::string> WithoutAction(std::vector<std::string> tokens) {
  const auto action = std::find_if(tokens.begin() + 1, tokens.end(), [](const std::string& token) {
    return token[0] == '{' || token[0] == '/';
  });
  tokens.erase(action, tokens.end());
  return tokens;
}

// PATH:prog.c:42, prog.c:42
bool IsSourceLine(std::string_view place) {
  const size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view file = place.substr(0, colon);
  const std::string_view line = place.substr(colon + 1);
  const std::string_view ending = file.substr(std::min(file.rfind('.'), file.size()));
  constexpr std::array<std::string_view, 9> kEndings = {".c",   ".cc", ".cpp", ".cxx", ".h",
                                                        ".hpp", ".go", ".rs",  ".py"};
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end() && !line.empty() &&
         line.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string MeantLine(const std::string& line, lang::Dialect dialect, const std::string& program) {
  const auto tokens = lang::Tokenize(line);
  if (tokens.empty()) return {};
  for (const auto& [theirs, ours] : kKinds) {
    if (!tokens[0].starts_with(theirs)) continue;
    return std::string(ours) + lang::JoinTokens(WithoutAction(tokens)).substr(theirs.size());
  }
  if (auto named = WithColon(tokens); !named.empty()) return named;
  if (auto parted = WithBlank(tokens, program); !parted.empty()) return parted;
  if (dialect == lang::Dialect::kExtended)
    if (auto escaped = WithEscape(tokens); !escaped.empty()) return escaped;
  const LineDestination destination = lang::Classify(line, dialect);
  if (destination == LineDestination::kKernel && tokens.size() > 1 && IsOfAProbe(tokens[0]))
    return WithProgram(tokens, program);
  const bool has_no_kind = destination == LineDestination::kMalformed || lang::NamesEvents(line);
  if (!has_no_kind) return {};
  if (IsPlaceInAFile(tokens[0], program)) return "p " + lang::JoinTokens(tokens);
  return WithKind(tokens, program);
}

void SuggestMeantLine(const std::vector<std::string>& lines, lang::Dialect dialect,
                      const std::string& program, RemoteError& error) {
  std::string& suggestions = error.error.metadata["suggestions"];
  if (!suggestions.empty()) return;
  for (const std::string& line : lines) {
    const auto tokens = lang::Tokenize(line);
    const std::string command = lang::JoinTokens(tokens);
    const bool is_refused =
        std::any_of(error.verdicts.begin(), error.verdicts.end(),
                    [&](const v1::LineVerdict& verdict) { return verdict.command() == command; });
    if (!is_refused && !error.verdicts.empty()) continue;
    if (tokens.size() > 1 && IsSourceLine(tokens[1])) error.error.hint = kOfSourceLines;
    if (tokens.size() == 1 && tokens[0].find(',') != std::string::npos)
      error.error.hint = EachOfItsOwn(tokens[0]);
    if (error.error.reason == "UNKNOWN_KIND" && error.error.hint.empty())
      error.error.hint = kOfForms;
    suggestions = MeantLine(line, dialect, program);
    if (suggestions.empty() && error.error.reason == "NO_TARGET") suggestions = AsEvent(tokens);
    if (suggestions.empty() && error.error.reason == "FILE_NOT_FOUND")
      suggestions = WithPath(tokens, program);
    if (!suggestions.empty()) return;
  }
}

}  // namespace probed::client
