#include "engine/probe/fault_signal.h"

#include <csignal>
#include <optional>

#include "engine/sys/proc.h"
#include "engine/sys/signal.h"

namespace probed::probe {
namespace {

using sys::SignalBit;

std::optional<SignalAction>& ActionOf(ProcessState& state, int signal) {
  return signal == SIGBUS ? state.bus_action : state.segv_action;
}

}  // namespace

void LookAtFaultActions(tracee::Stopped& stopped, ProcessState& state) {
  auto status = sys::ReadTaskStatus(stopped.tid());
  if (!status.ok()) return;
  for (int signal : {SIGSEGV, SIGBUS}) {
    bool is_default = ((status->ignored | status->caught) & SignalBit(signal)) == 0;
    ActionOf(state, signal) = is_default ? std::nullopt : ExchangeAction(stopped, signal, nullptr);
  }
}

// A handler that is in place has not been taken away, so the signal was not blocked.
void KeepFaultSignal(tracee::Stopped& stopped, ProcessState& state, int signal) {
  auto status = sys::ReadTaskStatus(stopped.tid());
  auto mask = stopped.ReadSignalMask();
  if (!status.ok() || !mask) return;
  std::optional<SignalAction>& action = ActionOf(state, signal);
  if ((status->caught & SignalBit(signal)) != 0) {
    if (!action) action = ExchangeAction(stopped, signal, nullptr);
    return;
  }
  bool had_handler = action && action->handler != kIgnoreSignal;
  if (had_handler || LooksFull(*mask, signal)) {
    stopped.WriteSignalMask(*mask | SignalBit(signal));
  }
  if (action) (void)ExchangeAction(stopped, signal, &*action);
}

}  // namespace probed::probe
