#pragma once
// What cannot be done in a program whose returns the processor checks against a second stack, which
// only calls write: hijacked returns, and calls and returns that are not executed where they stand.
// Documentation/arch/x86/shstk.rst. Tracer thread.

#include <string>

#include "engine/arch/x86_64/instruction.h"
#include "engine/probe/probe.h"
#include "engine/probe/process_state.h"

namespace probed::probe {

// Why jumps to detours are none of its; empty when it has no such stack.
std::string ShadowStackObstacle(const ProcessState& state);
// SHADOW_STACK: no such probe there.
Status CheckShadowStack(const ProcessState& state, const Probe& probe,
                        const arch::Instruction& instruction);
// A system call that has just returned has given the thread that stack: probes that it forbids go.
void WithdrawFromShadowStack(tracee::Stopped& stopped, ProcessState& state);

}  // namespace probed::probe
