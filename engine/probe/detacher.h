#pragma once
// Takes everything of ours out of a process. Tracer thread only.

#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/probe/hit_handler.h"
#include "engine/probe/optimizer.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

// As many as ListSites has of it: entry and return probes of one address have one each; breakpoints
// that the engine needs for itself have none.
uint32_t CountListed(const Site& site);

class Detacher {
 public:
  // Done once, before anything else, while every thread is stopped.
  using Prepare = std::function<Status(std::vector<tracee::Stopped*>&)>;

  Detacher(tracee::Tracer& tracer, HitHandler& hits, Optimizer& optimizer, Prepare prepare = {})
      : tracer_(tracer), hits_(hits), optimizer_(optimizer), prepare_(std::move(prepare)) {}

  // Stops every thread, takes out breakpoints, jumps, hijacked returns and threads that are inside
  // our code, reads every byte back, unmaps our memory and lets the process go, all in one stop. An
  // exec meanwhile is survived. `leaving` is called when the bytes are clean, before `state` dies.
  // After an error the process is traced as before, if need be because a byte of ours could not be
  // taken out.
  Result<DetachReport> Detach(ProcessState& state, const std::function<void()>& leaving);

  // The same for a forked child that nobody follows: one stopped thread, not detached here.
  Result<DetachReport> CleanFork(tracee::Stopped& stopped, const ProcessState& parent,
                                 ProcessState& state);

 private:
  Result<DetachReport> TryDetach(ProcessState& state, const std::function<void()>& leaving);
  Status Clean(tracee::Stopped& stopped, ProcessState& state, DetachReport& report);
  Status RestoreAll(std::vector<tracee::Stopped*>& threads, ProcessState& state,
                    DetachReport& report);

  tracee::Tracer& tracer_;
  HitHandler& hits_;
  Optimizer& optimizer_;
  Prepare prepare_;
};

// The last resort for a process that is let go of although it would not stop: breakpoints and
// hijacked return addresses are replaced in its memory while it runs. Our memory stays mapped, and
// jumps stay, as what they lead to does nothing once the ring is closed.
void RestoreRunning(ProcessState& state);

}  // namespace probed::probe
