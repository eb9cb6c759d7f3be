#include "engine/probe/shadow_stack.h"

#include <sys/syscall.h>

#include <vector>

#include "engine/probe/transaction.h"
#include "engine/sys/proc.h"

namespace probed::probe {
namespace {

constexpr uint64_t kShadowStackEnable = 0x5001;  // ARCH_SHSTK_ENABLE of <asm/prctl.h>, Linux 6.6

bool NeedsPlainStack(const Probe& probe, const arch::Instruction& instruction) {
  return probe.hijacks() || instruction.is_call || instruction.is_return;
}

bool HasShadowStack(pid_t tid) {
  auto status = sys::ReadTaskStatus(tid);
  return status.ok() && status->shadow_stack;
}

Error Refusal() {
  return {.code = ErrorCode::kFailedPrecondition,
          .reason = "SHADOW_STACK",
          .message =
              "the program runs with a shadow stack, which a return probe, or one on a call "
              "or return instruction, would not match",
          .hint =
              "probe the function's entry, or run it with "
              "GLIBC_TUNABLES=glibc.cpu.x86_shstk=off",
          .metadata = {}};
}

}  // namespace

std::string ShadowStackObstacle(const ProcessState& state) {
  return HasShadowStack(state.id.pid) ? "the program runs with a shadow stack" : "";
}

Status CheckShadowStack(const ProcessState& state, const Probe& probe,
                        const arch::Instruction& instruction) {
  if (!NeedsPlainStack(probe, instruction) || !HasShadowStack(state.id.pid)) return {};
  return Refusal();
}

void WithdrawFromShadowStack(tracee::Stopped& stopped, ProcessState& state) {
  const user_regs_struct& regs = stopped.regs();
  bool enabled = static_cast<long>(regs.orig_rax) == SYS_arch_prctl &&
                 regs.rdi == kShadowStackEnable && HasShadowStack(stopped.tid());
  if (!enabled) return;
  tracee::CodeMemory code(stopped);
  for (Site* site : state.sites.Sorted()) {
    for (const auto& probe : std::vector(site->probes())) {
      if (!NeedsPlainStack(*probe, site->instruction())) continue;
      probe->obstacle = Refusal().ToString();
      site->RemoveProbe(*probe);
    }
    (void)SyncSite(code, *site);
  }
}

}  // namespace probed::probe
