#pragma once
// What a thread stopped inside a detour would look like without the probe. Pure; the caller has the
// thread stopped. Order of the calls: Locate; then Unwind for kPrologue and kBody.

#include <sys/user.h>

#include <cstdint>
#include <optional>

#include "engine/arch/x86_64/emulate.h"
#include "engine/detour/detour.h"

namespace probed::detour {

enum class Phase : uint8_t {
  kPrologue,   // nothing is recorded yet
  kBody,       // some probes have recorded the hit: see `recorded`
  kDisplaced,  // all have; it runs the displaced instructions
};

struct Location {
  Phase phase = Phase::kPrologue;
  uint32_t recorded = 0;  // probes, in their order, that are done with this hit
  // A reservation of the probe after them is held: its position in the ring (RingHeader::head at
  // the time), its CPU and length; whoever finishes the hit must commit it as kAbandonedRecord.
  struct Reservation {
    uint32_t cpu = 0;
    uint64_t position = 0;
    uint64_t length = 0;
  };
  std::optional<Reservation> reservation;
};

// Nothing: the ip is not in this detour.
std::optional<Location> Locate(const Detour& detour, uint64_t buffer, const user_regs_struct& regs);

// Makes `regs` the program's own at the site (ip = site). False when the save area is unreadable.
bool Unwind(const Detour& detour, uint64_t buffer, uint64_t site, user_regs_struct& regs,
            arch::MemoryBus& memory);

// A thread in one of the routines that detours call, which stand at `routines`: makes `regs` those
// of the call, in the detour. False: it is in none, or its stack is unreadable.
bool LeaveRoutine(uint64_t routines, user_regs_struct& regs, arch::MemoryBus& memory);
bool InRoutines(uint64_t routines, uint64_t ip);

// Where a load that faulted at `ip` goes on; nothing: not one of ours.
std::optional<uint64_t> FixUpAddress(const Detour& detour, uint64_t buffer, uint64_t ip);
std::optional<uint64_t> FixUpInRoutines(uint64_t routines, uint64_t ip);

}  // namespace probed::detour
