#include "engine/kernel/probe.h"

#include <algorithm>
#include <utility>

#include "engine/kernel/event_format.h"

namespace probed::kernel {
Probe::Probe(event::ProbeId id, View& view, Event event, Shown shown)
    : id_(id), view_(view), event_(std::move(event)), shown_(std::move(shown)) {}

Result<std::unique_ptr<Probe>> Probe::Create(event::ProbeId id, View& view, Event event,
                                             Shown shown) {
  std::unique_ptr<Probe> probe(new Probe(id, view, std::move(event), std::move(shown)));
  PROBED_TRY(const std::string format, probe->event_.ReadFormat());
  PROBED_TRY(probe->schema_, view.stream->Add(probe->shown_.group, format, id, probe->shown_.origin,
                                              probe->shown_.event));
  return probe;
}

// Off before the stream forgets it, and defined for as long as the stream knows its id.
Probe::~Probe() {
  event_.Quiet();
  if (schema_) view_.stream->Remove(id_);
}

Event Probe::Release(std::unique_ptr<Probe> probe) {
  probe->event_.Quiet();
  return std::move(probe->event_);
}

Result<std::string> Probe::ReadFormat() const {
  PROBED_TRY(const std::string format, event_.ReadFormat());
  return WithName(format, shown_.event);
}

Status Probe::SetEnabled(bool enabled) {
  Status set = event_.SetEnabled(enabled);
  if (set.ok()) enabled_ = enabled;
  return set;
}

Status Probe::WriteTrigger(const std::string& line) {
  Status written = event_.WriteTrigger(line);
  if (written.ok()) selective_ = true;
  return written;
}

Counters Probe::Count(const Profile& profile) const {
  const Stream::Counts read = view_.stream->CountsOf(id_);
  const auto kernel = profile.find({event_.name().group, event_.name().event});
  if (!event_.defined() || kernel == profile.end())
    return {.hits = read.recorded, .recorded = read.recorded};
  const ProbeCounts& counts = kernel->second;
  const uint64_t unread = counts.hits - std::min(counts.hits, read.recorded);
  Counters counters{.hits = counts.hits + counts.missed, .missed = counts.missed};
  if (selective_ || !event_.filter().empty()) {
    counters.recorded = counts.hits - unread;
    counters.filtered = unread;
  } else {
    counters.recorded = counts.hits;
    counters.lost = unread;
  }
  return counters;
}

}  // namespace probed::kernel
