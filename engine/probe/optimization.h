#pragma once
// What stands at an optimized site: a jump instead of a breakpoint, and the detour it leads to.
// Immutable once built; shared by the copies of a site that forked children have.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/detour/detour.h"
#include "engine/probe/probe.h"

namespace probed::probe {

// Bytes that are written over the program's own.
struct CodePatch {
  RemoteAddr address;
  std::vector<uint8_t> original;
  std::vector<uint8_t> patched;

  bool Covers(RemoteAddr at) const { return at >= address && at - address < patched.size(); }
};

struct Optimization {
  RemoteAddr site;
  RemoteAddr buffer;
  uint32_t buffer_size = 0;  // as allocated
  detour::Detour detour;
  std::vector<arch::Instruction> region;  // displaced instructions
  // The jump at the site comes last: what it leads to is there by then.
  std::vector<CodePatch> patches;
  // In the order in which they run, what each selected when the detour was made, and its index in
  // the ring's tables.
  std::vector<std::shared_ptr<Probe>> probes;
  std::vector<Selection> selections;
  std::vector<uint32_t> indices;
  // Positions in `probes`: what runs at the entry, and what runs at the return.
  std::vector<size_t> entries;
  std::vector<size_t> returns;
  uint32_t entry_arguments = 0;  // kept for $argN
  RemoteAddr trampoline;         // behind the detour in its buffer; 0: no return probes
  detour::Detour returning;      // its code

  // What the buffer holds.
  std::vector<uint8_t> Code() const;
  RemoteAddr region_end() const;
  RemoteAddr displaced() const { return buffer + detour.displaced; }
  bool InDetour(RemoteAddr ip) const { return ip >= buffer && ip - buffer < detour.code.size(); }
  bool InDisplaced(RemoteAddr ip) const { return InDetour(ip) && ip >= displaced(); }
  // Its detour does what these probes want now.
  bool Serves(const std::vector<std::shared_ptr<Probe>>& wanted) const;
  // Where the jump at the site leads to when it does not reach the detour: there stands another.
  std::optional<RemoteAddr> island() const;
  bool InTrampoline(RemoteAddr ip) const {
    return !returns.empty() && ip >= trampoline && ip - trampoline < returning.code.size();
  }
  // Of the int3 with which one of them asks for us.
  bool AsksAt(RemoteAddr address) const {
    if (InDetour(address)) return detour.ask != 0 && address == buffer + detour.ask;
    return InTrampoline(address) && address == trampoline + returning.ask;
  }
  // What the program had at an address that is patched.
  std::optional<uint8_t> OriginalByte(RemoteAddr address) const;
};

}  // namespace probed::probe
