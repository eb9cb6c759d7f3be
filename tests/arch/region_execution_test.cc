// Differential execution of regions: random runs of instruction forms, natively and through their
// copy, caught at every place in it and entered at every instruction. The oracle is the processor.
//
// PROBED_ARCH_RUNS sets the number of runs, PROBED_ARCH_SEED the seed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/arch/x86_64/disassembler.h"
#include "tests/arch/comparable.h"
#include "tests/arch/forms.h"
#include "tests/arch/hex.h"
#include "tests/arch/random_state.h"
#include "tests/arch/region_mechanisms.h"
#include "tests/arch/text_section.h"

namespace probed::arch {
namespace {

constexpr uint64_t kHighBase = 0x2000'1000'0000;
constexpr uint64_t kLowBase = 0x1000'0000;

using Code = std::vector<uint8_t>;

bool EndsARun(const Instruction& instruction) {
  return instruction.is_call || instruction.is_return || instruction.is_far ||
         instruction.operation.kind == OperationKind::kJump;
}

bool NeedsTracer(const Instruction& instruction) {
  const Operand& target = instruction.operation.source;
  return instruction.execution == Execution::kCopyAndTrap ||
         (instruction.is_call && (target.reg == kRsp || target.memory.base == kRsp));
}

// Whether a region may be copied, said independently of the code under test.
bool IsRelocatable(std::span<const Instruction> region) {
  for (const Instruction& instruction : region) {
    bool is_last = &instruction == &region.back();
    if (instruction.execution == Execution::kRefused || NeedsTracer(instruction)) return false;
    if (instruction.is_syscall && region.size() > 1) return false;
    if (EndsARun(instruction) && !is_last) return false;
  }
  return true;
}

// Whether single-stepping changes what it does: it lets the program see the trap flag, or is
// carried out by the kernel, which then does not stop behind it (UMIP).
bool ShowsSteps(const Instruction& instruction) {
  switch (Disassemble(instruction.code())->instruction.mnemonic) {
    case ZYDIS_MNEMONIC_SGDT:
    case ZYDIS_MNEMONIC_SIDT:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR:
      return true;
    default:
      return instruction.pushes_flags || instruction.is_syscall;
  }
}

// Stores where the last x87 instruction stood, which a copy cannot hide.
bool StoresX87Pointer(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
      return true;
    default:
      return false;
  }
}

struct Counts {
  size_t runs = 0, refused = 0, finished = 0, faulted = 0, caught = 0, entered = 0;
};

class RegionComparison {
 public:
  explicit RegionComparison(uint64_t seed) : random_(seed), seed_(seed) {}
  ~RegionComparison() {
    fmt::print(
        "[   COUNT  ] {} runs of {} + {} forms: {} refused, {} finished, {} faulted, {} caught in "
        "the copy, {} entered in the middle\n",
        counts_.runs, inner_.size(), ends_.size(), counts_.refused, counts_.finished,
        counts_.faulted, counts_.caught, counts_.entered);
  }

  bool Ready() {
    high_ = Puppet::Create(kHighBase);
    low_ = Puppet::Create(kLowBase);
    return high_ != nullptr && low_ != nullptr;
  }

  void AddForms(const Forms& forms) {
    for (const auto& [form, code] : forms) {
      ZydisMnemonic mnemonic = Disassemble(code)->instruction.mnemonic;
      if (WhyNotComparable(mnemonic) != nullptr || StoresX87Pointer(mnemonic)) continue;
      Result<Instruction> instruction = Decode(code, kHighBase);
      (instruction.ok() && EndsARun(*instruction) ? ends_ : inner_).push_back(code);
    }
  }

  void RunRandom() {
    std::vector<Code> run = MakeRun();
    bool is_low = std::ranges::any_of(
        run, [](const Code& code) { return NeedsLowAddresses(Disassemble(code)->instruction); });
    Puppet& puppet = is_low ? *low_ : *high_;
    RandomState states(puppet.initial(), puppet.base(), seed_ ^ counts_.runs * 0x9e3779b97f4a7c15);
    MachineState state = states.Make(run);
    Compare(puppet, run, state, counts_.runs++ % 2 == 0 ? layout::kNearArena : layout::kFarArena);
  }

  const Counts& counts() const { return counts_; }

 private:
  const Code& Pick(const std::vector<Code>& forms) { return forms[random_() % forms.size()]; }

  std::vector<Code> MakeRun() {
    std::vector<Code> run;
    size_t length = 1 + random_() % 5;
    while (run.size() < length) {
      unsigned chance = run.size() + 1 == length ? 40 : 2;
      run.push_back(Pick(random_() % 100 < chance ? ends_ : inner_));
    }
    return run;
  }

  void Compare(Puppet& puppet, const std::vector<Code>& run, const MachineState& state,
               uint64_t arena) {
    uint64_t original = puppet.base() + layout::kInstruction;
    std::vector<Instruction> region;
    Code bytes;
    for (const Code& code : run) {
      Result<Instruction> instruction = Decode(code, original + bytes.size());
      if (!instruction.ok()) return;  // aiming made it something else
      region.push_back(std::move(instruction).value());
      bytes.insert(bytes.end(), code.begin(), code.end());
    }
    SCOPED_TRACE(ToHex(bytes));
    auto copy = BuildRegionCopy(region, original, puppet.base() + arena + layout::kCopyInArena);
    ASSERT_EQ(copy.ok(), IsRelocatable(region));
    if (!copy.ok()) {
      EXPECT_EQ(copy.error().reason, "REGION_NOT_RELOCATABLE");
      ++counts_.refused;
      return;
    }
    native_ = RunNative(puppet, bytes, state);
    ++(native_.finished ? counts_.finished : counts_.faulted);
    std::vector<MachineState> trace = TraceNative(puppet, bytes, state);
    PlacedRegion placed(puppet, region, arena, std::move(copy).value());
    ExpectSame(puppet, region, placed.Run(state), "copy");
    if (std::any_of(region.begin(), region.end(), ShowsSteps)) return;
    ExpectInTrace(puppet, region, trace, placed.Catch(state));
    ExpectEntries(puppet, region, trace, placed);
  }

  void ExpectSame(const Puppet& puppet, std::span<const Instruction> region, Outcome outcome,
                  const char* what) {
    ForgiveDeadWord(puppet, region.back(), native_, outcome);
    ForgiveOrderOfFaults(region.back(), outcome);
    EXPECT_EQ(Difference(native_, outcome, 0, 0), "") << what;
  }

  // A call through memory that can neither be read nor pushed: either fault comes first.
  void ForgiveOrderOfFaults(const Instruction& last, Outcome& outcome) const {
    if (!last.is_call || native_.finished || outcome.finished) return;
    outcome.signal = native_.signal;
    outcome.signal_code = native_.signal_code;
    outcome.signal_address = native_.signal_address;
  }

  // Everything a thread caught in the copy is turned into must be a moment of the native run.
  void ExpectInTrace(const Puppet& puppet, std::span<const Instruction> region,
                     const std::vector<MachineState>& trace, std::vector<Outcome> caught) {
    size_t at = 0;
    for (Outcome& outcome : caught) {
      ++counts_.caught;
      while (at < trace.size() && trace[at].regs.rip != outcome.state.regs.rip)
        ++at;
      ASSERT_LT(at, trace.size()) << outcome.trouble;
      Outcome moment{.ran = true, .state = trace[at]};
      outcome.finished = false;
      ForgiveDeadWord(puppet, region.back(), moment, outcome);
      EXPECT_EQ(Difference(moment, outcome, 0, 0), "") << "caught at moment " << at;
    }
  }

  void ExpectEntries(const Puppet& puppet, std::span<const Instruction> region,
                     const std::vector<MachineState>& trace, PlacedRegion& placed) {
    uint64_t end = trace.front().regs.rip;
    for (const Instruction& instruction : region)
      end += instruction.length;
    for (size_t at = 1; at < trace.size(); ++at) {
      if (trace[at].regs.rip <= trace.front().regs.rip || trace[at].regs.rip >= end) continue;
      ++counts_.entered;
      ExpectSame(puppet, region, placed.Enter(trace[at]), "entered");
    }
  }

  std::mt19937_64 random_;
  uint64_t seed_;
  std::unique_ptr<Puppet> high_;
  std::unique_ptr<Puppet> low_;
  std::vector<Code> inner_;
  std::vector<Code> ends_;
  Outcome native_;
  Counts counts_;
};

TEST(RegionExecutionTest, RandomRunsOfForms) {
  RegionComparison comparison(FromEnvironment("PROBED_ARCH_SEED", 1));
  ASSERT_TRUE(comparison.Ready());
  Forms forms;
  for (const TextSection& text : LibraryTexts())
    CollectForms(text.bytes, forms);
  EnumerateLegacyForms(forms);
  EnumerateVexForms(forms);
  if (__builtin_cpu_supports("avx512f")) EnumerateEvexForms(forms);  // else most runs would fault
  comparison.AddForms(forms);
  uint64_t runs = FromEnvironment("PROBED_ARCH_RUNS", 10'000);
  for (uint64_t run = 0; run < runs && !testing::Test::HasFailure(); ++run)
    comparison.RunRandom();
  EXPECT_GT(comparison.counts().finished, runs / 3);
  EXPECT_GT(comparison.counts().caught, runs / 2);
}

}  // namespace
}  // namespace probed::arch
