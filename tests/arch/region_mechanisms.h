#pragma once
// Several instructions in a row carried out as they are, and out of line.

#include <span>
#include <vector>

#include "engine/arch/x86_64/region.h"
#include "tests/arch/machine_state.h"
#include "tests/arch/mechanisms.h"
#include "tests/arch/puppet.h"

namespace probed::arch {

// The copy of a region in the puppet; where the region itself was, there are breakpoints.
class PlacedRegion {
 public:
  PlacedRegion(Puppet& puppet, std::span<const Instruction> region, uint64_t arena,
               RegionCopy copy);

  // Runs the copy freely.
  Outcome Run(const MachineState& state);
  // Steps through the copy and gives back, for each instruction done and each half done, what
  // LeaveRegionCopy makes of it.
  std::vector<Outcome> Catch(const MachineState& state);
  // Enters the copy at `state`'s ip, an address inside the region, and runs on freely.
  Outcome Enter(const MachineState& state);

 private:
  bool Contains(uint64_t ip) const { return ip - address_ < copy_.code.size(); }
  Outcome RunFrom(uint64_t ip, const MachineState& state);
  void GiveFaultToProgram(const Stop& stop, Outcome& outcome);
  bool Leave(Outcome& outcome);
  void CorrectX87Pointer(MachineState& state) const;

  Puppet& puppet_;
  std::span<const Instruction> region_;
  uint64_t original_;
  uint64_t address_;
  RegionCopy copy_;
};

// The states of the thread before each of the instructions that `code` holds and behind the last,
// as the processor steps through them.
std::vector<MachineState> TraceNative(Puppet& puppet, std::span<const uint8_t> code,
                                      const MachineState& state);

}  // namespace probed::arch
