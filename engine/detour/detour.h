#pragma once
// The code that a jump at a site leads to: it records the hit without a trap and runs the displaced
// instructions. Assembled here as bytes for a known address; nothing here touches a target. Pure.
//
// In generated code: no system call, no libc, no vector or x87 instruction; the program's 128-byte
// red zone is left alone; flags and registers are restored; the stack pointer is constant between
// prologue and epilogue, which say where it is, so whoever finds a thread inside can tell its
// registers (leave.h). Only the routines that a detour calls (string_routines.h) have their return
// address below it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/arch/x86_64/region.h"
#include "engine/lang/fetch_code.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/filter_code.h"
#include "engine/ring/layout.h"

namespace probed::detour {

// Where the target has mapped the shared memory. Rings are at most 1 GiB for each CPU.
struct SharedMemory {
  uint64_t control = 0;
  uint64_t ring = 0;
  uint64_t routines = 0;  // TheStringRoutines(), anywhere
  ring::Geometry geometry;
};

// One entry probe on the site, in the order they run (newest first).
struct DetourProbe {
  const lang::FetchProgram* program = nullptr;
  lang::FetchLimits limits;
  uint64_t file_base = 0;                    // base of `@+N`
  uint32_t index = 0;                        // in ProbeControl and ProbeCounters
  const lang::FilterCode* filter = nullptr;  // hits that fail it are counted as `filtered`
  uint16_t event_id = 0;                     // common_type
  ring::Sampling sampling{};                 // of those that pass; the rest is `sampled_out`
  uint64_t seconds_per_tick = 0;             // of the tsc, times 2^64; for Sampling::per_second
};

// What a site does for return probes: their trampoline takes the place of the return address.
struct Hijack {
  uint64_t trampoline = 0;           // address of AssembleTrampoline's code; 0: no return probes
  std::span<const uint32_t> probes;  // their indexes; while all are off nothing is hijacked
  uint32_t arguments = 0;            // to be kept for $argN, at most ring::kShadowArguments
  uint64_t daemon_trampoline = 0;    // what the daemon hijacks with: chains to it are its own
};

// Whether this processor has these instructions; a detour takes its CPU's number from either.
bool HasRdpid();
bool HasRdtscp();

struct DetourRequest {
  uint64_t site = 0;
  uint64_t buffer = 0;  // where the code will stand, within +-2 GiB of the site
  std::span<const arch::Instruction> region;  // the instructions that the jump displaces
  std::span<const DetourProbe> probes;
  SharedMemory memory;
  bool has_rdpid = HasRdpid();
  Hijack hijack;
};

// A load that may fault, and where the thread goes on when it does. Offsets in the code.
struct FixUp {
  uint32_t load = 0;
  uint32_t resume = 0;
};

// From `offset` on, how far the stack pointer is below the program's.
struct StackStep {
  uint32_t offset = 0;
  uint32_t below = 0;
};

// A register of user_regs_struct that stands in the save area, and where (bytes above rsp).
struct SavedRegister {
  uint16_t user_regs_offset = 0;
  uint16_t stack_offset = 0;
};

// The code of one probe. Its hit is recorded, counted or dropped once the ip is at `committed` or
// has left the block at `end`.
struct ProbeBlock {
  // Where a reservation is held.
  struct Reserved {
    uint32_t begin = 0, end = 0;
    bool tentative = false;  // at `begin`, behind the compare-and-exchange, only if ZF is set
  };
  uint32_t begin = 0;
  uint32_t committed = 0;  // the jump behind the store of the commit word
  uint32_t end = 0;
  std::vector<Reserved> reserved;
};

struct Detour {
  std::vector<uint8_t> code;
  std::vector<FixUp> fix_ups;  // ascending by load
  // In the prologue every other register, and the flags, are still the program's. In the epilogue,
  // which begins with the first of its steps, the save area is whole, if below the stack pointer.
  std::vector<StackStep> prologue;
  std::vector<StackStep> epilogue;
  uint32_t body = 0;       // from here to `displaced`: registers are in the save area
  uint32_t save_area = 0;  // bytes from rsp in the body up to the program's own rsp
  std::vector<SavedRegister> saved;
  // Where the status flags are saved: lahf's byte at +1, the overflow flag at +0. They are there
  // while flags_begin <= ip < flags_end; elsewhere, and all other flags always, the thread's own.
  uint16_t status_flags = 0;
  uint32_t flags_begin = 0;
  uint32_t flags_end = 0;
  SharedMemory memory;
  // One per probe, then one for the hijack if there is one, or for taking a trampoline's frame off.
  std::vector<ProbeBlock> blocks;
  // An int3 in the body: what the hit still has to do is left to the daemon, which has the frames
  // that this code does not find. 0: there is none.
  uint32_t ask = 0;
  // Of a hijack: the frame is there and the slot not yet, if pushed <= ip < the block's committed.
  uint32_t pushed = 0;
  uint32_t displaced = 0;   // the displaced instructions begin
  arch::RegionCopy region;  // their states; offsets are from `displaced`
};

// DETOUR_UNSUPPORTED names what needs the daemon ($comm, vector registers, some filters...),
// and DISPLACEMENT_OUT_OF_RANGE a buffer that is too far away.
Result<Detour> Assemble(const DetourRequest& request);

// Upper bound of a detour's size, to reserve a buffer before its address is known.
Result<uint32_t> MeasureDetour(const DetourRequest& request);

}  // namespace probed::detour
