#pragma once
// Machine code for strings that all detours of a process call, instead of a copy in each: it is
// most of what a detour would need memory for. Runs anywhere; the same bytes in every process.
// Pure.
//
// A routine changes the stack by nothing but its return address, so whoever finds a thread in one
// finds the detour that called it (LeaveRoutine, leave.h).

#include <cstdint>
#include <vector>

#include "engine/detour/assembler.h"
#include "engine/detour/detour.h"

namespace probed::detour {

struct StringRoutines {
  std::vector<uint8_t> code;
  std::vector<FixUp> fix_ups;  // ascending by load

  // Offsets. For what is searched the caller has rdx = the string and ecx = the longest that is
  // stored; it gets esi = its length word (payload.h), and kTotal has grown by what it takes.
  // Changes rax, rcx, r9 and kHighBits.
  uint32_t measure = 0;
  uint32_t measure_by_kernel_rules = 0;  // a string that is too long is a fault
  // Copies rcx bytes from rsi to kCursor, and leaves kCursor behind them. The carry flag: a fault.
  // Changes rax, rcx, rsi and r9.
  uint32_t copy = 0;
};

const StringRoutines& TheStringRoutines();

}  // namespace probed::detour
