#include "engine/kernel/event_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "base/edit_distance.h"
#include "engine/kernel/owner.h"

namespace probed::kernel {
namespace {

// A pattern that means more is a mistake more often than not.
constexpr size_t kMostEvents = 2000;

std::string Nearest(std::string_view available, const std::string& name) {
  std::string nearest;
  size_t least = name.size() / 3 + 1;
  std::istringstream lines{std::string(available)};
  for (std::string line; std::getline(lines, line);) {
    const size_t distance = EditDistance(line, name, least);
    if (distance >= least) continue;
    least = distance;
    nearest = line;
  }
  return nearest;
}

Error NoSuchEvent(std::string_view available, const std::string& pattern) {
  const std::string nearest = Nearest(available, pattern);
  return Error{.code = ErrorCode::kNotFound,
               .reason = "NO_SUCH_EVENT",
               .message = "the kernel has no event " + pattern,
               .hint = nearest.empty() ? "available_events in tracefs lists them" : nearest,
               .metadata = {}};
}

Error TooMany(const std::string& pattern, size_t count) {
  return Error{.code = ErrorCode::kResourceExhausted,
               .reason = "TOO_MANY_EVENTS",
               .message = fmt::format("{} means {} events", pattern, count),
               .hint = fmt::format("at most {} at once", kMostEvents),
               .metadata = {}};
}

}  // namespace

std::vector<KernelName> MatchEvents(std::string_view available, const std::string& pattern) {
  std::vector<KernelName> names;
  std::istringstream lines{std::string(available)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || fnmatch(pattern.c_str(), line.c_str(), 0) != 0) continue;
    KernelName name{line.substr(0, colon), line.substr(colon + 1)};
    if (!OwnerOf(name.group) && !OwnerOf(name.event)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end(), [](const KernelName& a, const KernelName& b) {
    return std::tie(a.group, a.event) < std::tie(b.group, b.event);
  });
  return names;
}

Result<std::vector<KernelName>> FindEvents(const Tracefs& tracefs, const std::string& pattern) {
  PROBED_TRY(const std::string available, tracefs.Read("available_events"));
  auto names = MatchEvents(available, pattern);
  if (names.empty()) return NoSuchEvent(available, pattern);
  if (names.size() > kMostEvents) return TooMany(pattern, names.size());
  return names;
}

}  // namespace probed::kernel
