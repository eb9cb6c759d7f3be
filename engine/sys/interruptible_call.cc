#include "engine/sys/interruptible_call.h"

#include <ucontext.h>

// The call is given up when the signal finds the thread before the `syscall` instruction or,
// because the kernel wants to begin again, on it. Behind it there is a result, which is kept.
asm(R"(
  .pushsection .text
  .type probed_interruptible_call, @function
probed_interruptible_call:
  endbr64
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  syscall
probed_interruptible_call_result:
  ret
probed_interruptible_call_abandoned:
  mov $-4, %rax
  ret
  .size probed_interruptible_call, . - probed_interruptible_call
  .popsection
)");

extern "C" {
long probed_interruptible_call(long number, long first, long second, long third, long fourth);
extern const char probed_interruptible_call_result[];     // NOLINT: labels of the code above
extern const char probed_interruptible_call_abandoned[];  // NOLINT: its -4 is -EINTR
}

namespace probed::sys {

long InterruptibleCall(long number, long first, long second, long third, long fourth) {
  return probed_interruptible_call(number, first, second, third, fourth);
}

void EndInterruptibleCall(int, void* context) {
  auto address = [](auto* code) { return reinterpret_cast<greg_t>(code); };
  greg_t& ip = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  bool is_under_way =
      ip >= address(&probed_interruptible_call) && ip < address(probed_interruptible_call_result);
  if (is_under_way) ip = address(probed_interruptible_call_abandoned);
}

}  // namespace probed::sys
