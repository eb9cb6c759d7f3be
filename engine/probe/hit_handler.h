#pragma once
// A trap of ours: which probes it means, and how the thread goes on. Tracer thread only.

#include <csignal>
#include <functional>
#include <vector>

#include "engine/probe/detour_exit.h"
#include "engine/probe/process_state.h"
#include "engine/probe/recorder.h"
#include "engine/probe/return_handler.h"
#include "engine/tracee/stopped.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

class HitHandler {
 public:
  // Called for the engine's own breakpoints; may install and remove sites, the one it is called for
  // included.
  using HookRunner = std::function<void(tracee::Stopped&, ProcessState&, RemoteAddr site)>;

  // Asked for sites that must be breakpoints again, for good, as soon as no callback runs.
  using Unoptimizer = std::function<void(ProcessState&, RemoteAddr site, const std::string& why)>;

  HitHandler(event::Drainer& drainer, HookRunner run_hooks, Unoptimizer unoptimize)
      : recorder_(drainer),
        returns_(recorder_),
        run_hooks_(std::move(run_hooks)),
        unoptimize_(std::move(unoptimize)) {}

  // Any SIGTRAP stop. A trap that is not ours is handed to the program.
  tracee::Resumption OnTrap(tracee::Stopped& stopped, ProcessState& state);

  // Whatever takes a thread out of our code: a signal, a clone, a detach. Its registers become
  // those that it would have without probes. `fault`: the instruction itself raised the signal.
  void LeaveOurCode(tracee::Stopped& stopped, ProcessState& state, bool fault);
  // What waits for the end of a thread's steps, which are not to be ended.
  static void ReleaseSignals(tracee::Stopped& stopped);
  // Any other signal that is about to be delivered: the program sees the addresses of its own code.
  tracee::Resumption OnSignal(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info);

  // For threads that have to leave a detour.
  EvaluateRest Evaluator();

  ReturnHandler& returns() { return returns_; }

 private:
  static tracee::Resumption GoOn(const ProcessState& state) { return {.how = state.HowToGoOn()}; }
  tracee::Resumption Handle(tracee::Stopped& stopped, ProcessState& state, bool has_trapped);
  tracee::Resumption OnBreakpoint(tracee::Stopped& stopped, ProcessState& state);
  tracee::Resumption OnAsked(tracee::Stopped& stopped, ProcessState& state);
  tracee::Resumption OnHit(tracee::Stopped& stopped, ProcessState& state, Site& site);
  tracee::Resumption Execute(tracee::Stopped& stopped, ProcessState& state, Site& site);
  tracee::Resumption OnStepped(tracee::Stopped& stopped, ProcessState& state);
  tracee::Resumption DeliverHeld(tracee::Stopped& stopped, ProcessState& state);
  bool FinishFirst(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info);
  void LeaveForSignal(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info);
  tracee::Resumption OnProgramsStep(tracee::Stopped& stopped, ProcessState& state,
                                    const siginfo_t& info);
  tracee::Resumption OnForeignTrap(tracee::Stopped& stopped, ProcessState& state);
  tracee::Resumption OnSignalInDetour(tracee::Stopped& stopped, ProcessState& state, Site& site,
                                      const siginfo_t& info);
  tracee::Resumption OnFaultInDetour(tracee::Stopped& stopped, ProcessState& state, Site& site,
                                     const siginfo_t& info);
  tracee::Resumption OnFaultOfOurs(tracee::Stopped& stopped, ProcessState& state, Site& site,
                                   const siginfo_t& info);
  bool GoOnInRoutine(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info);
  bool GoOnBehindFault(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info);
  static void LetSignalsIn(tracee::Stopped& stopped);
  tracee::Resumption OnSteppedInDetour(tracee::Stopped& stopped, ProcessState& state, Site& site);
  tracee::Resumption Deliver(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info);
  tracee::Resumption DeliverInOrder(tracee::Stopped& stopped, ProcessState& state,
                                    const std::vector<siginfo_t>& signals);
  void EvaluateFrom(tracee::Stopped& stopped, ProcessState& state, Site& site, size_t first);
  void Evaluate(tracee::Stopped& stopped, ProcessState& state, Site& site);
  void RecordReturn(tracee::Stopped& stopped, ProcessState& state, const Site& site, Probe& probe);

  Recorder recorder_;
  ReturnHandler returns_;
  HookRunner run_hooks_;
  Unoptimizer unoptimize_;
};

}  // namespace probed::probe
