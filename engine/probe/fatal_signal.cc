#include "engine/probe/fatal_signal.h"

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

}  // namespace

bool WillDumpCore(const tracee::Stopped& stopped, const ProcessState& state, int signal) {
  if ((kDumpCore & sys::SignalBit(signal)) == 0) return false;
  if (!state.ring && ThreadState::Of(stopped.thread()).returns.frames().empty()) return false;
  const auto status = sys::ReadTaskStatus(stopped.tid());
  return status.ok() && ((status->caught | status->ignored) & sys::SignalBit(signal)) == 0;
}

}  // namespace probed::probe
