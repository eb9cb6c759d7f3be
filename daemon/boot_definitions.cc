#include "daemon/boot_definitions.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <spdlog/spdlog.h>

#include "base/file.h"
#include "engine/lang/definition_set.h"
#include "engine/lang/line.h"

namespace probed::daemon {
namespace {

constexpr engine::TargetId kKernel{};  // what probes in the kernel belong to
constexpr std::string_view kBlanks = " \t\r\n\v\f";

std::string Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kBlanks) - first + 1));
}

void AddLines(const std::string& text, std::vector<std::string>& lines) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    line = Trimmed(line);
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
}

// One by one: a line that is refused must not take the others with it.
void Define(engine::Engine& engine, engine::TargetId target, const std::string& line) {
  const auto outcome = engine.CreateProbes(target, {line}, {});
  if (!outcome.ok())
    spdlog::warn("definition '{}': {}", line, outcome.error().ToString());
  else if (!outcome->errors.empty())
    spdlog::warn("definition '{}': {}", line, outcome->errors[0].error.ToString());
}

// As the kernel reads them: user code is named by a path, MODULE:SYMBOL is the kernel's. But names
// of modules have no dots (scripts/Makefile.lib makes C tokens of them).
bool IsInKernel(const std::string& line) {
  const auto destination = lang::Classify(line, lang::Dialect::kKernel);
  const auto tokens = lang::Tokenize(line);
  const std::string place = tokens.size() > 1 ? tokens[1] : "";
  const bool names_a_file =
      place.find('.') < place.find(':') && place.find(':') != std::string::npos;
  return destination == lang::LineDestination::kKernel && !names_a_file;
}

}  // namespace

std::vector<std::string> ParseBootParameter(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    std::string line(text.substr(0, end));
    std::replace(line.begin(), line.end(), ',', ' ');
    AddLines(line, lines);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Result<std::vector<std::string>> ReadDefinitionFiles(const std::string& directory) {
  std::vector<std::string> paths, lines;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with('.')) paths.push_back(entry.path());
  }
  if (error == std::errc::no_such_file_or_directory) return lines;
  if (error) return ErrnoError(error.value(), "read " + directory);
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    PROBED_TRY(const std::string text, ReadFile(path));
    AddLines(text, lines);
  }
  return lines;
}

BootDefinitions::BootDefinitions(const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    (IsInKernel(line) ? kernel_ : user_).push_back(line);
}

void BootDefinitions::DefineInKernel(engine::Engine& engine) const {
  for (const std::string& line : kernel_)
    Define(engine, kKernel, line);
}

void BootDefinitions::DefineIn(engine::Engine& engine, engine::TargetId target) const {
  for (const std::string& line : user_)
    Define(engine, target, line);
}

}  // namespace probed::daemon
