#include "engine/kernel/dynamic_events.h"

#include <sstream>

#include <fmt/format.h>

namespace probed::kernel {

std::vector<DynamicEvent> ParseDynamicEvents(std::string_view text) {
  std::vector<DynamicEvent> events;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    const size_t space = std::min(line.find_first_of(" \t"), line.size());
    const size_t slash = line.find('/', colon);
    if (colon > space || slash > space) continue;
    events.push_back({.kind = line.substr(0, colon),
                      .group = line.substr(colon + 1, slash - colon - 1),
                      .event = line.substr(slash + 1, space - slash - 1),
                      .body = space < line.size() ? line.substr(space + 1) : ""});
  }
  return events;
}

std::vector<DynamicEvent> ListDynamicEvents(const Tracefs& tracefs) {
  const auto text = tracefs.Read("dynamic_events");
  return text.ok() ? ParseDynamicEvents(*text) : std::vector<DynamicEvent>();
}

Status RemoveDynamicEvent(const Tracefs& tracefs, const std::string& group,
                          const std::string& event) {
  return tracefs.Write("dynamic_events", fmt::format("-:{}/{}\n", group, event));
}

}  // namespace probed::kernel
