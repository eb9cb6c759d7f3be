#include "tests/arch/mechanisms.h"

#include <fmt/format.h>

namespace probed::arch {
namespace {

constexpr int kMaxSteps = 1 << 14;  // rounds of one string instruction

std::vector<uint8_t> WithBreakpoint(const Instruction& instruction) {
  std::vector<uint8_t> code(instruction.code().begin(), instruction.code().end());
  code[0] = 0xcc;
  return code;
}

struct Placed {
  OutOfLineCopy copy;
  uint64_t original;
  uint64_t address;

  bool Contains(uint64_t ip) const { return ip - address < copy.code.size(); }
  bool MustBeStepped() const { return !copy.boosted && !copy.ends_in_trap; }
  bool HasReachedTrap(const Stop& stop, uint64_t ip) const {
    return copy.ends_in_trap && stop.code == SI_KERNEL &&
           ip - 1 == address + copy.instruction_length;
  }
  bool IsTwoStep() const { return copy.boosted && copy.states.back().pushed != 0; }
};

std::optional<Placed> Place(Puppet& puppet, const Instruction& instruction, uint64_t arena) {
  uint64_t original = puppet.base() + layout::kInstruction;
  uint64_t address = puppet.base() + arena + layout::kCopyInArena;
  auto copy = BuildCopy(instruction, original, address);
  if (!copy.ok()) return std::nullopt;
  puppet.FillCode(WithBreakpoint(instruction));
  puppet.FillArena(arena, copy->code);
  return Placed{std::move(copy).value(), original, address};
}

// What the probe layer does with a signal that arrives while a thread is in the copy.
void GiveFaultToProgram(const Placed& placed, const Instruction& instruction, const Stop& stop,
                        Outcome& outcome) {
  SetFault(stop, outcome);
  outcome.signal_address =
      OriginalIp(placed.copy, placed.address, stop.address).value_or(stop.address);
  user_regs_struct& regs = outcome.state.regs;
  uint64_t ip = regs.rip;
  if (!LeaveCopy(placed.copy, instruction, placed.original, placed.address, regs)) {
    outcome.trouble = fmt::format("signal {} in the copy at an unknown place, +{}", stop.signal,
                                  ip - placed.address);
  } else if (regs.rip != placed.original) {
    outcome.trouble = fmt::format("signal {} behind the instruction at copy+{}", stop.signal,
                                  ip - placed.address);
  }
}

}  // namespace

bool WentElsewhere(const Stop& stop, Outcome& outcome, const CodeBytes& here) {
  constexpr uint64_t kResumeFlag = 1 << 16;  // set for the failed fetch, not for the branch
  user_regs_struct& regs = outcome.state.regs;
  if (stop.signal == SIGTRAP && stop.code == SI_KERNEL) {
    --regs.rip;
    return true;
  }
  if (stop.signal != SIGSEGV || regs.rip - here.address < here.size) return false;
  regs.eflags &= ~kResumeFlag;
  return true;
}

void SetFault(const Stop& stop, Outcome& outcome) {
  outcome.signal = stop.signal;
  outcome.signal_code = stop.code;
  outcome.signal_address = stop.address;
}

Outcome RunNative(Puppet& puppet, std::span<const uint8_t> code, const MachineState& state) {
  Outcome outcome{.ran = true};
  Stop stop;
  puppet.FillCode(code);
  puppet.SetState(state);
  if (!puppet.Continue(stop)) return outcome.trouble = "the child is gone", outcome;
  outcome.state = puppet.GetState();
  outcome.finished =
      WentElsewhere(stop, outcome, {puppet.base() + layout::kInstruction, code.size()});
  if (!outcome.finished) SetFault(stop, outcome);
  return outcome;
}

Outcome RunEmulated(Puppet& puppet, const Instruction& instruction, const MachineState& state) {
  Outcome outcome;
  puppet.SetState(state);
  user_regs_struct regs = state.regs;
  PuppetMemory memory(puppet.pid());
  if (Emulate(instruction, regs, memory) != EmulationResult::kDone) return outcome;
  outcome.ran = true;
  outcome.finished = true;
  outcome.state = puppet.GetState();
  outcome.state.regs = regs;
  return outcome;
}

Outcome RunBoosted(Puppet& puppet, const Instruction& instruction, uint64_t arena,
                   const MachineState& state) {
  Outcome outcome;
  std::optional<Placed> placed = Place(puppet, instruction, arena);
  if (!placed.has_value() || placed->MustBeStepped()) return outcome;
  outcome.ran = true;
  MachineState start = state;
  start.regs.rip = placed->address;
  Stop stop;
  puppet.SetState(start);
  if (!puppet.Continue(stop)) return outcome.trouble = "the child is gone", outcome;
  outcome.state = puppet.GetState();
  if (placed->HasReachedTrap(stop, outcome.state.regs.rip)) {
    --outcome.state.regs.rip;
    outcome.finished =
        LeaveCopy(placed->copy, instruction, placed->original, placed->address, outcome.state.regs);
    return outcome;
  }
  if (!placed->Contains(outcome.state.regs.rip)) {
    outcome.finished = WentElsewhere(stop, outcome, {placed->original, instruction.length});
  }
  if (!outcome.finished) GiveFaultToProgram(*placed, instruction, stop, outcome);
  return outcome;
}

Outcome RunStepped(Puppet& puppet, const Instruction& instruction, uint64_t arena,
                   const MachineState& state) {
  Outcome outcome;
  std::optional<Placed> placed = Place(puppet, instruction, arena);
  if (!placed.has_value() || placed->IsTwoStep()) return outcome;
  outcome.ran = true;
  MachineState start = state;
  start.regs.rip = placed->address;
  puppet.SetState(start);
  PuppetMemory memory(puppet.pid());
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    Stop stop;
    if (!puppet.Step(stop)) return outcome.trouble = "the child is gone", outcome;
    outcome.state = puppet.GetState();
    uint64_t ip = outcome.state.regs.rip;
    StepResult result = FixUpAfterStep(placed->copy, instruction, placed->original, placed->address,
                                       outcome.state.regs, memory);
    outcome.state.memory = puppet.GetState().memory;
    if (result == StepResult::kFailed) outcome.trouble = "the fix-up failed";
    if (stop.signal != SIGTRAP) {
      outcome.state.regs.rip = ip;
      GiveFaultToProgram(*placed, instruction, stop, outcome);
      return outcome;
    }
    if (result == StepResult::kNotFinished) continue;
    outcome.finished = true;
    return outcome;
  }
  outcome.trouble = "too many steps";
  return outcome;
}

std::vector<Outcome> RunCaught(Puppet& puppet, const Instruction& instruction, uint64_t arena,
                               const MachineState& state) {
  std::vector<Outcome> caught;
  std::optional<Placed> placed = Place(puppet, instruction, arena);
  // A step shows its trap flag to pushf.
  if (!placed.has_value() || !placed->copy.boosted || instruction.pushes_flags) return caught;
  MachineState now = state;
  now.regs.rip = placed->address;
  puppet.SetState(now);
  Stop stop;
  for (int steps = 0; steps < kMaxSteps && puppet.Step(stop); ++steps) {
    now = puppet.GetState();
    if (stop.signal == SIGTRAP && now.regs.rip == placed->address) continue;  // a round of a rep
    if (stop.signal != SIGTRAP || !placed->Contains(now.regs.rip)) return caught;
    Outcome outcome{.ran = true, .finished = true, .state = now};
    if (!LeaveCopy(placed->copy, instruction, placed->original, placed->address,
                   outcome.state.regs)) {
      outcome.trouble =
          fmt::format("caught at an unknown place, +{}", now.regs.rip - placed->address);
    }
    // Half a call is taken back; that it ends well is RunBoosted's business.
    if (outcome.state.regs.rip == placed->original) {
      outcome.trouble = outcome.state.regs.rsp == state.regs.rsp ? "" : "rsp is not as before";
      if (outcome.trouble.empty()) continue;
    }
    caught.push_back(std::move(outcome));
  }
  return caught;
}

void ForgiveDeadWord(const Puppet& puppet, const Instruction& instruction, Outcome& native,
                     Outcome& other) {
  if (!instruction.is_call || native.finished || !other.ran) return;
  uint64_t at = layout::StackInImage(puppet.base(), native.state.regs.rsp - 8);
  for (uint64_t end = at + 8; at < end && at < layout::kImageSize; ++at) {
    other.state.memory[at] = native.state.memory[at];
  }
}

}  // namespace probed::arch
