#include "engine/probe/fatal_signal.h"

#include <algorithm>
#include <csignal>

#include "engine/sys/proc.h"
#include "engine/sys/signal.h"

namespace probed::probe {
namespace {

// signal(7).
constexpr uint64_t kDumpCore = sys::SignalBit(SIGABRT) | sys::SignalBit(SIGBUS) |
                               sys::SignalBit(SIGFPE) | sys::SignalBit(SIGILL) |
                               sys::SignalBit(SIGQUIT) | sys::SignalBit(SIGSEGV) |
                               sys::SignalBit(SIGSYS) | sys::SignalBit(SIGTRAP) |
                               sys::SignalBit(SIGXCPU) | sys::SignalBit(SIGXFSZ);

bool HasHijacked(const ProcessState& state) {
  const auto& threads = state.process.threads();
  return state.ring || std::any_of(threads.begin(), threads.end(), [](const auto& each) {
           return !ThreadState::Of(*each.second).returns.frames().empty();
         });
}

}  // namespace

bool WillDumpCore(const tracee::Stopped& stopped, const ProcessState& state, int signal) {
  if (signal == 0 || (kDumpCore & sys::SignalBit(signal)) == 0) return false;
  if (!HasHijacked(state)) return false;
  const auto status = sys::ReadTaskStatus(stopped.tid());
  return status.ok() && ((status->caught | status->ignored) & sys::SignalBit(signal)) == 0;
}

}  // namespace probed::probe
