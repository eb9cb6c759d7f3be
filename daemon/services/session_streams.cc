#include "daemon/services/session_streams.h"

#include <utility>

namespace probed::daemon {

SessionStreams::Registration::Registration(SessionStreams& streams, SessionKey session,
                                           EventFilter& filter)
    : streams_(streams) {
  std::lock_guard lock(streams.mutex_);
  entry_ = streams.filters_.emplace(std::move(session), &filter);
}

SessionStreams::Registration::~Registration() {
  std::lock_guard lock(streams_.mutex_);
  streams_.filters_.erase(entry_);
}

void SessionStreams::AddTarget(const SessionKey& session, event::TargetId target) {
  std::lock_guard lock(mutex_);
  const auto [begin, end] = filters_.equal_range(session);
  for (auto it = begin; it != end; ++it)
    it->second->Add(target);
}

void SessionStreams::AddProbes(const SessionKey& session,
                               const std::vector<event::ProbeId>& probes) {
  std::lock_guard lock(mutex_);
  const auto [begin, end] = filters_.equal_range(session);
  for (auto it = begin; it != end; ++it)
    it->second->Add(probes);
}

}  // namespace probed::daemon
