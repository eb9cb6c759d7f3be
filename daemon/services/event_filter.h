#pragma once
// Which events one subscriber gets: those of the targets and probes it named, as far as it may see
// them. Children that a target forked belong to it. Thread-safe: the publishing thread asks, the
// subscriber's thread teaches.

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "engine/engine.h"

namespace probed::daemon {

class EventFilter {
 public:
  struct Wanted {
    std::set<event::TargetId> targets;  // empty: all
    std::set<event::ProbeId> probes;    // empty: all
  };
  using MaySee = std::function<bool(event::TargetId)>;

  EventFilter(Wanted wanted, MaySee may_see)
      : wanted_(std::move(wanted)), may_see_(std::move(may_see)) {}

  bool WantsHit(event::ProbeId probe, event::TargetId target);
  bool WantsNotice(const event::TargetNotice& notice);
  bool WantsProbe(const engine::ProbeInfo& probe);
  // Targets that were there before the subscription.
  void Learn(const engine::TargetInfo& target);
  // The target that the probe of an accepted hit belongs to.
  event::TargetId TargetOf(event::ProbeId probe, event::TargetId hit_in);

 private:
  struct Known {
    event::TargetId root;
    bool visible = false;
  };
  Known& Lookup(event::TargetId target);
  bool WantsTarget(const Known& known, event::TargetId target) const;

  const Wanted wanted_;
  const MaySee may_see_;
  std::mutex mutex_;
  std::map<event::TargetId, Known> known_;  // processes that live
  std::unordered_map<event::ProbeId, event::TargetId> probe_targets_;
};

}  // namespace probed::daemon
