#include "client/command_line_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/edit_distance.h"

namespace probed::client {
namespace {

// The nearest of `known` that `typed` may stand for: begun, or mistyped.
std::string Near(const std::string& typed, const std::vector<std::string>& known) {
  size_t nearest = 1 + typed.size() / 4;
  std::vector<std::string> near;
  for (const auto& word : known) {
    size_t distance = word.starts_with(typed) ? 1 : EditDistance(typed, word, nearest);
    if (distance > nearest) continue;
    if (distance < nearest) near.clear();
    nearest = distance;
    near.push_back(word);
  }
  return fmt::format("{}", fmt::join(near, ", "));
}

Error UsageError(std::string reason, std::string message, std::string hint,
                 const std::string& near = "") {
  Error error{.code = ErrorCode::kInvalidArgument,
              .reason = std::move(reason),
              .message = std::move(message),
              .hint = std::move(hint),
              .metadata = {}};
  if (!near.empty()) error.metadata["suggestions"] = near;
  return error;
}

std::vector<std::string> VerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr))
    names.push_back(verb->get_name());
  return names;
}

// Those of option groups (subcommands without a name) too.
std::vector<std::string> OptionNames(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const auto& name : option->get_lnames())
      names.push_back("--" + name);
  }
  for (const CLI::App* group : verb.get_subcommands(nullptr)) {
    if (!group->get_name().empty()) continue;
    auto more = OptionNames(*group);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

bool IsOption(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

// No verb was recognised.
Error DescribeVerb(const CLI::App& app, const std::vector<std::string>& words) {
  constexpr char kHint[] = "probectl --help, which lists the verbs";
  if (words.empty()) return UsageError("NO_VERB", "a verb is missing", kHint);
  const std::string& word = words.front();
  if (IsOption(word)) {
    return UsageError("UNKNOWN_OPTION", word + " is not an option of probectl itself",
                      "probectl VERB [OPTIONS]: options follow the verb",
                      Near(word, OptionNames(app)));
  }
  return UsageError("UNKNOWN_VERB", "there is no verb " + word, kHint, Near(word, VerbNames(app)));
}

bool IsNumber(const std::string& word) {
  return word.find_first_not_of("0123456789") == std::string::npos;
}

Error DescribeExtra(const CLI::App& verb, const std::string& word, const std::string& hint) {
  if (!IsOption(word)) {
    const auto options = OptionNames(verb);
    const bool has_pid = std::find(options.begin(), options.end(), "--pid") != options.end();
    if (IsNumber(word) && has_pid)
      return UsageError("UNEXPECTED_ARGUMENT", verb.get_name() + " does not take '" + word + "'",
                        "--pid " + word);
    return UsageError("UNEXPECTED_ARGUMENT", verb.get_name() + " does not take '" + word + "'",
                      hint);
  }
  std::string name = word.substr(0, word.find('='));
  return UsageError("UNKNOWN_OPTION", verb.get_name() + " has no option " + name, hint,
                    Near(name, OptionNames(verb)));
}

}  // namespace

Error DescribeParseError(const CLI::App& app, const CLI::ParseError& error,
                         const std::vector<std::string>& words) {
  auto verbs = app.get_subcommands();
  if (verbs.empty() || (!words.empty() && IsOption(words.front()))) return DescribeVerb(app, words);
  const CLI::App& verb = *verbs.front();
  std::string hint = fmt::format("probectl {} --help", verb.get_name());
  // A mistyped option is what made another one missing, so it comes first.
  auto extras = app.remaining(true);
  auto option = std::find_if(extras.begin(), extras.end(), IsOption);
  if (option != extras.end()) return DescribeExtra(verb, *option, hint);
  if (!extras.empty()) return DescribeExtra(verb, extras.front(), hint);
  return UsageError("BAD_COMMAND_LINE", error.what(), hint);
}

}  // namespace probed::client
