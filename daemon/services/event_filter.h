#pragma once
// Which events one subscriber gets: those of the targets and probes it named, as far as it may see
// them. Children that a target forked belong to it. Thread-safe: the publishing thread asks, the
// subscriber's thread teaches.

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"

namespace probed::daemon {

class EventFilter {
 public:
  struct Wanted {
    std::set<event::TargetId> targets;  // empty: all, unless `grows`
    std::set<event::ProbeId> probes;    // likewise
    bool grows = false;                 // more is added later
  };
  using MaySee = std::function<bool(event::TargetId)>;

  EventFilter(Wanted wanted, MaySee may_see)
      : may_see_(std::move(may_see)), wanted_(std::move(wanted)) {}

  bool WantsHit(event::ProbeId probe, event::TargetId target);
  bool WantsNotice(const event::TargetNotice& notice);
  bool WantsProbe(const engine::ProbeInfo& probe);
  // Wanted from now on.
  void Add(event::TargetId target);
  void Add(const std::vector<event::ProbeId>& probes);
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
  bool NamesProbe(event::ProbeId probe) const;

  const MaySee may_see_;
  std::mutex mutex_;
  Wanted wanted_;
  std::map<event::TargetId, Known> known_;  // processes that live
  std::unordered_map<event::ProbeId, event::TargetId> probe_targets_;
};

}  // namespace probed::daemon
