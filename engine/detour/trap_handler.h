#pragma once
// The SIGTRAP handler that stands in a target for the time between the daemon's death and the end
// of the guard's work. While a tracer lives it sees each trap first, and puts the program's own
// action back before it passes one on, so that the handler does not run. Pure; signal(7).
//
// It sends a thread that has run into an int3 back to it, again and again, until somebody has
// taken that int3 out, or the handler. It knows no table, so none can be out of date, and what the
// program itself has there takes effect in the end. The dead daemon may have moved the thread on
// already, with the signal still to come: then the ip is right. That is told by
//   the resume flag, which the daemon sets along with the ip, and which an int3 clears, or
//   kCopyMark before the ip: the start of an out-of-line copy.
// Makes no system call but sigreturn, unless it may be called, or somebody sent the signal: then it
// puts the program's own action back, and sends the signal again as it was. Called by a handler of
// the program that has replaced it, and saved it, it does what the handler before ours did.

#include <cstdint>
#include <vector>

namespace probed::detour {

// Random. Never before the address behind an int3 of ours.
inline constexpr uint64_t kCopyMark = 0x6b5d'f10c'93c7'e8a5;

struct TrapHandlerCode {
  std::vector<uint8_t> code;  // position-independent
  uint32_t action = 0;  // the program's own, the kernel's struct sigaction; all 0, the default
  uint32_t former = 0;  // 64 bits, directly behind: the handler that was there before ours, or 0, 1
  uint32_t use = 0;     // 32 bits, a TrapHandlerUse
  uint32_t entry = 0;
  uint32_t restorer = 0;  // SA_RESTORER
};
inline constexpr uint32_t kActionWords = 4;

enum class TrapHandlerUse : uint32_t {
  kInForce,      // only the kernel calls it
  kMayBeCalled,  // by a handler that has replaced and saved it, too: it asks before it believes
  kLeft,         // a detach has left it mapped: no int3 is ours any more
};

// `id`, which stands at the start of the code, tells the process and its children from others.
TrapHandlerCode AssembleTrapHandler(uint64_t id);

}  // namespace probed::detour
