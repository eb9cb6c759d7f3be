#include "client/command_line_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
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

std::vector<std::string> OptionNames(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const auto& name : option->get_lnames())
      names.push_back("--" + name);
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

bool Has(const CLI::App& verb, const std::string& option) {
  return verb.get_option_no_throw(option) != nullptr;
}

bool IsDefinition(const std::string& word) {
  return word.find(':') != std::string::npos || word.find(' ') != std::string::npos;
}

// The option that a word may belong to; or else `hint`.
std::string WhereItBelongs(const CLI::App& verb, const std::string& word, const std::string& hint) {
  if (IsNumber(word) && Has(verb, "--pid")) return "--pid " + word;
  if (IsDefinition(word) && Has(verb, "--definition")) return fmt::format("-e '{}'", word);
  return hint;
}

Error DescribeExtra(const CLI::App& verb, const std::string& word, const std::string& hint) {
  if (!IsOption(word))
    return UsageError("UNEXPECTED_ARGUMENT", verb.get_name() + " does not take '" + word + "'",
                      WhereItBelongs(verb, word, hint));
  std::string name = word.substr(0, word.find('='));
  return UsageError("UNKNOWN_OPTION", verb.get_name() + " has no option " + name, hint,
                    Near(name, OptionNames(verb)));
}

// A verb that runs a command, which was not marked as one.
std::optional<Error> DescribeCommand(const CLI::App& verb, const std::vector<std::string>& extras) {
  const bool is_command = verb.get_name() == "run" && !extras.empty() && !IsOption(extras.front());
  if (!is_command) return std::nullopt;
  return UsageError("UNEXPECTED_ARGUMENT", "the command to run begins behind a --",
                    fmt::format("probectl run [OPTIONS] -- {}", fmt::join(extras, " ")));
}

// What CLI11 says in its own way.
Error DescribeMisuse(const CLI::App& verb, const CLI::ParseError& error, const std::string& hint) {
  constexpr char kReason[] = "BAD_COMMAND_LINE";
  const std::string text = error.what();
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    for (const CLI::Option* option : verb.get_options())
      if (option->get_required() && option->empty())
        return UsageError(kReason,
                          fmt::format("{} needs a {}: {}", verb.get_name(), option->get_name(),
                                      option->get_description()),
                          hint);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = text.substr(0, text.find(':'));
    if (const CLI::Option* option = verb.get_option_no_throw(name))
      return UsageError(kReason, fmt::format("{} needs a value: {}", name, option->get_type_name()),
                        hint);
  }
  return UsageError(kReason, text, hint);
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
  if (auto command = DescribeCommand(verb, extras)) return *std::move(command);
  auto option = std::find_if(extras.begin(), extras.end(), IsOption);
  if (option != extras.end()) return DescribeExtra(verb, *option, hint);
  if (!extras.empty()) return DescribeExtra(verb, extras.front(), hint);
  return DescribeMisuse(verb, error, hint);
}

}  // namespace probed::client
