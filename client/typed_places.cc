#include "client/typed_places.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "engine/lang/line.h"
#include "engine/lang/path_escape.h"
#include "engine/lang/place.h"

namespace probed::client {
namespace {

// With a '/' behind it; empty when we are nowhere (the directory was removed).
std::string WorkingDirectory() {
  char buffer[PATH_MAX];
  if (::getcwd(buffer, sizeof buffer) == nullptr || buffer[0] != '/') return {};
  std::string directory = buffer;
  if (directory.back() != '/') directory += '/';
  return directory;
}

// What of a line is its place: the second word of a definition or of a deletion.
std::optional<std::string_view> PlaceIn(std::string_view line) {
  const auto tokens = lang::Tokenize(line);
  if (tokens.size() < 2) return std::nullopt;
  const char kind = tokens[0][0];
  if (kind != 'p' && kind != 'r' && kind != '-') return std::nullopt;
  const size_t kind_end = line.find(tokens[0]) + tokens[0].size();
  return line.substr(line.find(tokens[1], kind_end), tokens[1].size());
}

std::string Command(const std::string& line) {
  return lang::JoinTokens(lang::Tokenize(line));
}

void Restore(const std::string& command, v1::LineVerdict& verdict) {
  const int grown = static_cast<int>(verdict.command().size()) - static_cast<int>(command.size());
  const int place = static_cast<int>(command.find(' ')) + 1;
  verdict.set_command(command);
  if (verdict.has_caret() && verdict.caret() > place)
    verdict.set_caret(std::max(place, verdict.caret() - grown));
}

std::string AbsolutePath(std::string_view path, const std::string& directory) {
  if (path.empty() || path.front() == '/' || directory.empty()) return std::string(path);
  while (path.starts_with("./"))
    path.remove_prefix(std::min(path.find_first_not_of('/', 1), path.size()));
  return directory + std::string(path);
}

}  // namespace

std::string AbsolutePath(std::string_view path) {
  return AbsolutePath(path, WorkingDirectory());
}

std::string AbsoluteFile(const std::string& path, const std::string& target) {
  const bool is_bare = path.find('/') == std::string::npos;
  if (is_bare && (!target.empty() || ::access(path.c_str(), F_OK) != 0)) return path;
  return AbsolutePath(path);
}

std::string AbsolutePlace(std::string_view place, lang::Dialect dialect) {
  const size_t end = std::min(lang::PathEnd(place, dialect), place.size());
  const std::string_view path = place.substr(0, end);
  if (path.find('/') == std::string_view::npos) return std::string(place);
  std::string directory = WorkingDirectory();
  if (dialect == lang::Dialect::kExtended) directory = lang::EscapePath(directory);
  return AbsolutePath(path, directory) + std::string(place.substr(end));
}

std::string AbsoluteLine(const std::string& line, lang::Dialect dialect) {
  const auto place = PlaceIn(line);
  if (!place) return line;
  const auto begin = static_cast<size_t>(place->data() - line.data());
  return line.substr(0, begin) + AbsolutePlace(*place, dialect) +
         line.substr(begin + place->size());
}

void ShowAsTyped(const std::vector<std::string>& lines, lang::Dialect dialect, RemoteError& error) {
  for (v1::LineVerdict& verdict : error.verdicts) {
    if (verdict.in_filter()) continue;
    for (const std::string& typed : lines) {
      const std::string absolute = AbsoluteLine(typed, dialect);
      if (absolute == typed || Command(absolute) != verdict.command()) continue;
      Restore(Command(typed), verdict);
      break;
    }
  }
}

}  // namespace probed::client
