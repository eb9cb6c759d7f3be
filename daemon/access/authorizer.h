#pragma once
// Asks the policy about live processes, and remembers who attached to targets that are gone, so
// that their last events and counters stay with their owner. Thread-safe.

#include <map>
#include <mutex>

#include "daemon/access/caller.h"
#include "engine/event/event.h"

namespace probed::daemon {

class Authorizer {
 public:
  // The identity of `pid` when the caller may trace it.
  Result<event::TargetId> CheckProcess(const Caller& caller, pid_t pid) const;

  // Whether the caller may see and change `target`. The answer is the same whether or not probed is
  // attached to it: permission comes before existence.
  Status CheckTarget(const Caller& caller, event::TargetId target) const;
  bool MaySee(const Caller& caller, event::TargetId target) const {
    return CheckTarget(caller, target).ok();
  }

  void Remember(event::TargetId target, const Caller& owner);
  void Forget(event::TargetId target);

 private:
  mutable std::mutex mutex_;
  std::map<event::TargetId, uid_t> owners_;
};

}  // namespace probed::daemon
