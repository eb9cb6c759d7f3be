#pragma once
// A system call that kWakeSignal ends for good, even where the kernel would begin it again after
// the handler (ERESTARTNOINTR), as it does while ptrace waits for an exec to be over.

namespace probed::sys {

// The result, or a negative errno; -EINTR when kWakeSignal came before there was a result.
long InterruptibleCall(long number, long first, long second, long third, long fourth);

// The handler of kWakeSignal (SA_SIGINFO).
void EndInterruptibleCall(int signal, void* context);

}  // namespace probed::sys
