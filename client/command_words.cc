#include "client/command_words.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstddef>

#include "client/verbs/options.h"

namespace probed::client {
namespace {

const CLI::App* FindVerb(const CLI::App& app, const std::vector<std::string>& words) {
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!words.empty() && verb->get_name() == words.front()) return verb;
  return nullptr;
}

const CLI::Option* FindOption(const CLI::App& verb, const std::string& word) {
  const bool is_option = word.size() > 1 && word.front() == '-';
  return is_option ? verb.get_option_no_throw(word.substr(0, word.find('='))) : nullptr;
}

// Whether its value is the word behind it.
bool TakesNext(const CLI::Option* option, const std::string& word) {
  return option != nullptr && option->get_items_expected_min() > 0 &&
         word.find('=') == std::string::npos;
}

bool IsNumber(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

Error MissingValue(const CLI::App& verb, const CLI::Option& option, const std::string& word,
                   const std::string& next) {
  const std::string hint = option.check_lname("pid")
                               ? "the pid of a process: pidof prints nothing where none runs"
                               : fmt::format("probectl {} --help", verb.get_name());
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "BAD_COMMAND_LINE",
          .message = fmt::format("{} needs a value: {}, and what follows is {}", word,
                                 option.get_type_name(), next),
          .hint = hint,
          .metadata = {}};
}

}  // namespace

std::vector<std::string> WithJoinedPids(const CLI::App& app, std::vector<std::string> words) {
  const CLI::App* verb = FindVerb(app, words);
  const CLI::Option* pid = verb != nullptr ? verb->get_option_no_throw("--pid") : nullptr;
  if (pid == nullptr || pid->get_type_name() != kPidsType) return words;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] != "-p" && words[i] != "--pid") continue;
    while (i + 2 < words.size() && IsNumber(words[i + 1].substr(words[i + 1].rfind(',') + 1)) &&
           IsNumber(words[i + 2])) {
      words[i + 1] += "," + words[i + 2];
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    }
  }
  return words;
}

std::optional<Error> FindMissingValue(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* verb = FindVerb(app, words);
  if (verb == nullptr) return std::nullopt;
  for (size_t i = 1; i + 1 < words.size() && words[i] != "--"; ++i) {
    const CLI::Option* option = FindOption(*verb, words[i]);
    if (!TakesNext(option, words[i])) continue;
    if (FindOption(*verb, words[i + 1]) != nullptr)
      return MissingValue(*verb, *option, words[i], words[i + 1]);
    ++i;
  }
  return std::nullopt;
}

}  // namespace probed::client
