#pragma once
// What a siginfo says about the instruction that a thread was at. Pure. sigaction(2).

#include <csignal>

namespace probed::probe {

// Raised by the instruction at hand, not sent by somebody.
bool IsFault(const siginfo_t& info);

// si_addr is the address of the instruction itself, not of its operand.
bool NamesInstruction(const siginfo_t& info);

// An operand was not aligned, and the program has asked for that check (EFLAGS.AC).
bool IsMisaligned(const siginfo_t& info);

}  // namespace probed::probe
