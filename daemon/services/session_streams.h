#pragma once
// Streams that show what a session holds, also what it comes to hold later. Thread-safe.

#include <map>
#include <mutex>
#include <vector>

#include "daemon/services/event_filter.h"
#include "daemon/sessions.h"

namespace probed::daemon {

class SessionStreams {
 public:
  // While it lives, what the session gets is added to the filter, which must live longer.
  class Registration {
   public:
    Registration(SessionStreams& streams, SessionKey session, EventFilter& filter);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    SessionStreams& streams_;
    std::multimap<SessionKey, EventFilter*>::iterator entry_;
  };

  void AddTarget(const SessionKey& session, event::TargetId target);
  void AddProbes(const SessionKey& session, const std::vector<event::ProbeId>& probes);

 private:
  std::mutex mutex_;  // taken before a filter's
  std::multimap<SessionKey, EventFilter*> filters_;
};

}  // namespace probed::daemon
