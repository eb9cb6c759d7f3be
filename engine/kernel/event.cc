#include "engine/kernel/event.h"

#include <cerrno>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace probed::kernel {
namespace {

// The command that takes a trigger away, of the line that shows it: neither count, filter nor what
// a histogram is doing belongs to it (trace_events_trigger.c, event_trigger_callback).
std::string Undo(const std::string& shown) {
  const bool hist = shown.starts_with("hist:");
  std::string line = shown.substr(0, hist ? shown.rfind(" [") : shown.find(" if "));
  if (hist) return "!" + line;
  const bool other_event = line.starts_with("enable_event:") ||
                           line.starts_with("disable_event:") || line.starts_with("enable_hist:") ||
                           line.starts_with("disable_hist:");
  size_t end = line.find(':');
  for (int words = other_event ? 2 : 0; words > 0 && end != std::string::npos; --words)
    end = line.find(':', end + 1);
  return "!" + line.substr(0, end);
}

}  // namespace

Event::Event(const Tracefs& tracefs, const std::string& directory, KernelName name, bool defined)
    : tracefs_(tracefs),
      directory_(fmt::format("{}/events/{}/{}", directory, name.group, name.event)),
      name_(std::move(name)),
      defined_(defined) {}

Event::Event(Event&& other) noexcept
    : tracefs_(std::move(other.tracefs_)),
      directory_(std::exchange(other.directory_, {})),
      name_(std::move(other.name_)),
      defined_(other.defined_),
      has_triggers_(other.has_triggers_),
      filter_(std::move(other.filter_)) {}

Event::~Event() {
  if (directory_.empty()) return;
  Quiet();
  (void)Remove();
}

// Triggers first: they hold the event, too, and with it its definition.
void Event::Quiet() {
  if (directory_.empty()) return;
  has_triggers_ = false;
  for (const std::string& trigger : Triggers())
    has_triggers_ |= !WriteTrigger(Undo(trigger)).ok();
  (void)SetEnabled(false);
  if (!filter_.empty()) (void)SetFilter("0");
}

bool Event::Remove() {
  if (has_triggers_) Quiet();
  if (!defined_) return !has_triggers_;
  const Status removed = RemoveDynamicEvent(tracefs_, name_.group, name_.event);
  defined_ = !removed.ok() && ErrnoOf(removed.error()) != ENOENT;
  return !defined_;
}

Result<std::string> Event::Read(std::string_view file) const {
  return tracefs_.Read(directory_ + "/" + std::string(file));
}

Status Event::Write(std::string_view file, std::string_view text) const {
  return tracefs_.Write(directory_ + "/" + std::string(file), text);
}

Status Event::SetEnabled(bool enabled) {
  return Write("enable", enabled ? "1" : "0");
}

// The kernel takes the old filter away even where it refuses the new one.
Status Event::SetFilter(const std::string& filter) {
  Status set = Write("filter", filter);
  if (!set.ok()) {
    (void)Write("filter", filter_.empty() ? "0" : filter_);
    return set;
  }
  filter_ = filter == "0" ? "" : filter;
  return {};
}

Status Event::WriteTrigger(const std::string& line) {
  return Write("trigger", line);
}

std::vector<std::string> Event::Triggers() const {
  std::vector<std::string> triggers;
  const auto text = Read("trigger");
  if (!text.ok()) return triggers;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line[0] != '#') triggers.push_back(line);
  return triggers;
}

}  // namespace probed::kernel
