#pragma once
// What a program does on a signal, asked and set through one of its threads. Tracer thread.

#include <cstdint>
#include <optional>

#include "engine/tracee/stopped.h"

namespace probed::probe {

// The kernel's struct sigaction (rt_sigaction(2)).
struct SignalAction {
  uint64_t handler = 0, flags = 0, restorer = 0, mask = 0;
};
inline constexpr uint64_t kIgnoreSignal = 1;  // SIG_IGN

// The action until now; null `action`: it is only asked. Nothing: the call could not be made.
std::optional<SignalAction> ExchangeAction(tracee::Stopped& stopped, int signal,
                                           const SignalAction* action);

// Whether a mask blocks all classic signals but, it may be, this one.
bool LooksFull(uint64_t mask, int signal);

}  // namespace probed::probe
