#include "daemon/services/event_filter.h"

namespace probed::daemon {
namespace {

// Hits of the kernel's have the process that they happened in, without its start time
// (kernel/stream.h): they belong to no target that could be attached to.
event::TargetId Belonging(event::TargetId target) {
  return target.start_ticks == 0 ? engine::kKernelTarget : target;
}

}  // namespace

// Permission is asked once and again after an exec, not at every hit.
EventFilter::Known& EventFilter::Lookup(event::TargetId target) {
  auto it = known_.find(target);
  if (it == known_.end()) it = known_.emplace(target, Known{target, may_see_(target)}).first;
  return it->second;
}

bool EventFilter::WantsTarget(const Known& known, event::TargetId target) const {
  if (!known.visible) return false;
  return (wanted_.targets.empty() && !wanted_.grows) || wanted_.targets.contains(target) ||
         wanted_.targets.contains(known.root);
}

bool EventFilter::NamesProbe(event::ProbeId probe) const {
  return (wanted_.probes.empty() && !wanted_.grows) || wanted_.probes.contains(probe);
}

bool EventFilter::WantsHit(event::ProbeId probe, event::TargetId target) {
  std::lock_guard lock(mutex_);
  if (!NamesProbe(probe)) return false;
  target = Belonging(target);
  const Known& known = Lookup(target);
  if (!WantsTarget(known, target)) return false;
  probe_targets_.try_emplace(probe, known.root);
  return true;
}

bool EventFilter::WantsNotice(const event::TargetNotice& notice) {
  std::lock_guard lock(mutex_);
  Known& known = Lookup(notice.target);
  known.root = notice.root;
  if (notice.change == event::TargetChange::kExecuted) known.visible = may_see_(notice.target);
  const bool wants = WantsTarget(known, notice.target);
  if (notice.change == event::TargetChange::kExited ||
      notice.change == event::TargetChange::kDetached)
    known_.erase(notice.target);
  return wants;
}

bool EventFilter::WantsProbe(const engine::ProbeInfo& probe) {
  std::lock_guard lock(mutex_);
  if (!NamesProbe(probe.id)) return false;
  return WantsTarget(Lookup(probe.target), probe.target);
}

void EventFilter::Add(event::TargetId target) {
  std::lock_guard lock(mutex_);
  wanted_.targets.insert(target);
}

void EventFilter::Add(const std::vector<event::ProbeId>& probes) {
  std::lock_guard lock(mutex_);
  wanted_.probes.insert(probes.begin(), probes.end());
}

void EventFilter::Learn(const engine::TargetInfo& target) {
  std::lock_guard lock(mutex_);
  Lookup(target.id).root = target.root;
}

event::TargetId EventFilter::TargetOf(event::ProbeId probe, event::TargetId hit_in) {
  std::lock_guard lock(mutex_);
  auto it = probe_targets_.find(probe);
  return it == probe_targets_.end() ? hit_in : it->second;
}

}  // namespace probed::daemon
