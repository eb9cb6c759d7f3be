#include "tests/arch/region_mechanisms.h"

#include <fmt/format.h>

#include <cstring>

namespace probed::arch {
namespace {

constexpr int kMaxSteps = 1 << 14;  // rounds of one string instruction
constexpr size_t kX87PointerAt = 8;

size_t SizeOf(std::span<const Instruction> region) {
  size_t size = 0;
  for (const Instruction& instruction : region)
    size += instruction.length;
  return size;
}

}  // namespace

PlacedRegion::PlacedRegion(Puppet& puppet, std::span<const Instruction> region, uint64_t arena,
                           RegionCopy copy)
    : puppet_(puppet),
      region_(region),
      original_(puppet.base() + layout::kInstruction),
      address_(puppet.base() + arena + layout::kCopyInArena),
      copy_(std::move(copy)) {
  puppet_.FillCode({});
  puppet_.FillArena(arena, copy_.code);
}

Outcome PlacedRegion::Run(const MachineState& state) {
  return RunFrom(address_, state);
}

Outcome PlacedRegion::Enter(const MachineState& state) {
  std::optional<uint64_t> place = EnterRegionCopy(copy_, address_, state.regs.rip);
  if (!place.has_value()) return {.ran = true, .trouble = "no instruction begins there"};
  return RunFrom(*place, state);
}

Outcome PlacedRegion::RunFrom(uint64_t ip, const MachineState& state) {
  Outcome outcome{.ran = true};
  MachineState start = state;
  start.regs.rip = ip;
  Stop stop;
  puppet_.SetState(start);
  if (!puppet_.Continue(stop)) return outcome.trouble = "the child is gone", outcome;
  outcome.state = puppet_.GetState();
  if (!Contains(outcome.state.regs.rip)) {
    outcome.finished = WentElsewhere(stop, outcome, {original_, SizeOf(region_)});
  }
  if (!outcome.finished) GiveFaultToProgram(stop, outcome);
  CorrectX87Pointer(outcome.state);
  return outcome;
}

void PlacedRegion::GiveFaultToProgram(const Stop& stop, Outcome& outcome) {
  SetFault(stop, outcome);
  for (const RegionCopy::State& place : copy_.states) {
    if (stop.address == address_ + place.offset) outcome.signal_address = place.original_ip;
  }
  Leave(outcome);
}

bool PlacedRegion::Leave(Outcome& outcome) {
  uint64_t ip = outcome.state.regs.rip;
  bool left = LeaveRegionCopy(copy_, region_, original_, address_, outcome.state.regs);
  if (!left) outcome.trouble = fmt::format("caught at an unknown place, +{}", ip - address_);
  return left;
}

std::vector<Outcome> PlacedRegion::Catch(const MachineState& state) {
  std::vector<Outcome> caught;
  MachineState now = state;
  now.regs.rip = address_;
  puppet_.SetState(now);
  Stop stop;
  for (int steps = 0; steps < kMaxSteps && puppet_.Step(stop); ++steps) {
    uint64_t before = now.regs.rip;
    now = puppet_.GetState();
    if (stop.signal != SIGTRAP || !Contains(now.regs.rip)) break;
    if (now.regs.rip == before) continue;  // a round of a rep
    Outcome outcome{.ran = true, .finished = true, .state = now};
    Leave(outcome);
    CorrectX87Pointer(outcome.state);
    caught.push_back(std::move(outcome));
  }
  return caught;
}

// An x87 instruction records its own address, and no copy can undo that.
void PlacedRegion::CorrectX87Pointer(MachineState& state) const {
  uint64_t pointer;
  std::memcpy(&pointer, &state.xstate[kX87PointerAt], sizeof pointer);
  for (const RegionCopy::State& place : copy_.states) {
    if (pointer != address_ + place.offset) continue;
    std::memcpy(&state.xstate[kX87PointerAt], &place.original_ip, sizeof pointer);
  }
}

std::vector<MachineState> TraceNative(Puppet& puppet, std::span<const uint8_t> code,
                                      const MachineState& state) {
  std::vector<MachineState> trace = {state};
  uint64_t original = puppet.base() + layout::kInstruction;
  puppet.FillCode(code);
  puppet.SetState(state);
  Stop stop;
  for (int steps = 0; steps < kMaxSteps && puppet.Step(stop); ++steps) {
    MachineState now = puppet.GetState();
    if (stop.signal != SIGTRAP) break;
    if (now.regs.rip == trace.back().regs.rip) continue;  // a round of a rep
    trace.push_back(std::move(now));
    if (trace.back().regs.rip - original >= code.size()) break;
  }
  return trace;
}

}  // namespace probed::arch
