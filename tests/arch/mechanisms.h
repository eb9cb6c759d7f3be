#pragma once
// One instruction carried out in every way: as it is, and as a probe would.

#include <span>

#include "engine/arch/x86_64/relocate.h"
#include "tests/arch/machine_state.h"
#include "tests/arch/puppet.h"

namespace probed::arch {

struct CodeBytes {
  uint64_t address = 0;
  uint64_t size = 0;
};

// Whether the code `here` was left: a branch ends at one of the int3 that fill the code, or at a
// fetch from where nothing is mapped. Makes the outcome's registers those of the branch.
bool WentElsewhere(const Stop& stop, Outcome& outcome, const CodeBytes& here);
void SetFault(const Stop& stop, Outcome& outcome);

// `code`: one instruction, or several in a row.
Outcome RunNative(Puppet& puppet, std::span<const uint8_t> code, const MachineState& state);

// `ran` is false when Emulate declines.
Outcome RunEmulated(Puppet& puppet, const Instruction& instruction, const MachineState& state);

// The copy in `arena`, run freely, or up to the trap that it ends in. `ran` is false when the copy
// cannot be built or must be stepped.
Outcome RunBoosted(Puppet& puppet, const Instruction& instruction, uint64_t arena,
                   const MachineState& state);

// The copy, single-stepped and fixed up. `ran` is false when it cannot be built, and for a boosted
// copy whose first instruction is only half of the original.
Outcome RunStepped(Puppet& puppet, const Instruction& instruction, uint64_t arena,
                   const MachineState& state);

// The boosted copy, stopped after each of its instructions: wherever a thread is caught in a copy,
// it can be given back to the program as if the instruction were done. One outcome for each such
// stop.
std::vector<Outcome> RunCaught(Puppet& puppet, const Instruction& instruction, uint64_t arena,
                               const MachineState& state);

// An indirect call that faults may or may not have written the word below the stack pointer, which
// it would overwrite when it is restarted: makes the two runs equal there.
void ForgiveDeadWord(const Puppet& puppet, const Instruction& instruction, Outcome& native,
                     Outcome& other);

}  // namespace probed::arch
