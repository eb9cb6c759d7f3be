#pragma once
// Return probes: hijacks return addresses at entry, records at the trampoline, and gives real
// addresses back when somebody else is about to look. Tracer thread only.

#include <memory>
#include <span>
#include <vector>

#include "engine/probe/process_state.h"
#include "engine/probe/recorder.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

class ReturnHandler {
 public:
  explicit ReturnHandler(Recorder& recorder) : recorder_(recorder) {}

  // At a hit on `function`, whose return address is on top of the stack. What cannot be hijacked is
  // counted as missed and the function runs untouched.
  void Hijack(tracee::Stopped& stopped, ProcessState& state, uint64_t function,
              std::span<const std::shared_ptr<Probe>> probes, StoppedContext& context);

  // At the trampoline, the return address just popped: records what waited, innermost first, and
  // puts the ip at the real return address. False: nobody of ours was called from here.
  bool OnReturn(tracee::Stopped& stopped, ProcessState& state);

  // In a trampoline of a detour, or where it asks: finishes what that has begun. The ip is the
  // program's then. False: nobody of ours was called from here.
  bool LeaveTrampoline(tracee::Stopped& stopped, ProcessState& state);

  // A thread has ended; what it waited for is missed. A coroutine that it called may go on in
  // another thread, so its slots are still known there.
  void HandOver(ProcessState& state, pid_t tid);

  // Before an unwinder runs: every slot of the thread shows its real address until Relay(). What
  // other threads wait for on the same stack, a coroutine's, is given up.
  void Lift(tracee::Stopped& stopped, ProcessState& state);
  // After the outermost unwinding: frames that are still on the stack are hijacked again, the rest
  // is missed.
  void Relay(tracee::Stopped& stopped, ProcessState& state);
  // The return through the word on top of the stack is missed, and the word real again: a copy of a
  // hijacked one would outlive whoever waits for it.
  void GiveUpTop(tracee::Stopped& stopped, ProcessState& state);
  // Whether a return is waited for on behalf of a probe that is disabled or deleted.
  static bool HasUnwanted(const ProcessState& state);
  // Those are missed, and slots that no other probe needs get their real address back. Every thread
  // is stopped; `threads` are all of them.
  void RestoreUnwanted(std::span<tracee::Stopped* const> threads, ProcessState& state);
  // For good, in all threads; `stopped` is any thread of the process. Returns the slots put back.
  uint32_t RestoreAll(tracee::Stopped& stopped, ProcessState& state);

 private:
  bool Redirect(tracee::Stopped& stopped, ProcessState& state, uint64_t slot, PendingReturn& frame);
  void RecordReturn(tracee::Stopped& stopped, ProcessState& state, PendingReturn& frame,
                    StoppedContext& context);
  void RecordTaken(tracee::Stopped& stopped, ProcessState& state, const Optimization& optimization,
                   const ring::ShadowFrame& frame, size_t first);

  Recorder& recorder_;
};

}  // namespace probed::probe
