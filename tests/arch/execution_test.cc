// Differential execution: each instruction form runs natively and through every mechanism from the
// same random states, and everything a program could see must be equal. The oracle is the
// processor.
//
// PROBED_ARCH_STATES sets the number of states a form, PROBED_ARCH_SEED the seed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/arch/x86_64/disassembler.h"
#include "tests/arch/comparable.h"
#include "tests/arch/forms.h"
#include "tests/arch/hex.h"
#include "tests/arch/mechanisms.h"
#include "tests/arch/random_state.h"
#include "tests/arch/text_section.h"

namespace probed::arch {
namespace {

constexpr uint64_t kHighBase = 0x2000'1000'0000;  // addresses of more than 32 bits
constexpr uint64_t kLowBase = 0x1000'0000;        // for 67 prefixes and absolute addresses

struct Counts {
  size_t forms = 0;
  size_t refused = 0;
  size_t native = 0;
  size_t native_finished = 0;
  size_t emulated = 0;
  size_t boosted = 0;
  size_t stepped = 0;
  size_t caught = 0;
  size_t differences = 0;
  std::map<std::string, size_t> skipped;
};

class Comparison {
 public:
  explicit Comparison(std::string name)
      : name_(std::move(name)), seed_(FromEnvironment("PROBED_ARCH_SEED", 1)) {}
  ~Comparison() { Print(); }

  bool Ready() {
    high_ = Puppet::Create(kHighBase);
    low_ = Puppet::Create(kLowBase);
    return high_ != nullptr && low_ != nullptr;
  }

  void RunAll(const Forms& forms, uint64_t states) {
    constexpr size_t kEnoughDifferences = 40;
    states = FromEnvironment("PROBED_ARCH_STATES", states);
    for (const auto& [form, code] : forms) {
      RunForm(form, code, states);
      if (counts_.differences > kEnoughDifferences) return;
    }
  }

  const Counts& counts() const { return counts_; }

 private:
  void RunForm(const std::string& form, const std::vector<uint8_t>& code, uint64_t states) {
    std::optional<Disassembly> disassembly = Disassemble(code);
    if (const char* why = WhyNotComparable(disassembly->instruction.mnemonic)) {
      ++counts_.skipped[fmt::format(
          "{}: {}", ZydisMnemonicGetString(disassembly->instruction.mnemonic), why)];
      return;
    }
    Puppet& puppet = NeedsLowAddresses(disassembly->instruction) ? *low_ : *high_;
    ++counts_.forms;
    RandomState random(puppet.initial(), puppet.base(), seed_ ^ std::hash<std::string>{}(form));
    for (uint64_t round = 0; round < states; ++round) {
      if (!RunOnce(form, code, round, puppet, random)) return;
    }
  }

  // False when the form is refused or already found to differ.
  bool RunOnce(const std::string& form, std::vector<uint8_t> code, uint64_t round, Puppet& puppet,
               RandomState& random) {
    MachineState state = random.Make(code);
    Result<Instruction> instruction = Decode(code, puppet.base() + layout::kInstruction);
    if (!instruction.ok() || instruction->execution == Execution::kRefused) {
      ++counts_.refused;
      return false;
    }
    // Near, far, and where neither distances nor plain jumps reach.
    constexpr uint64_t kArenas[] = {layout::kNearArena, layout::kFarArena, layout::kRemoteArena};
    uint64_t arena = kArenas[(round + counts_.forms) % 3];
    size_t before = counts_.differences;
    Outcome native = RunNative(puppet, code, state);
    ++counts_.native;
    counts_.native_finished += native.finished ? 1 : 0;
    auto check = [&](const char* mechanism, const Outcome& outcome, size_t& count) {
      Check(mechanism, form, *instruction, native, outcome, puppet, arena, count);
    };
    Outcome emulated = RunEmulated(puppet, *instruction, state);
    Outcome stepped = RunStepped(puppet, *instruction, arena, state);
    check("emulated", emulated, counts_.emulated);
    Outcome boosted = RunBoosted(puppet, *instruction, arena, state);
    ForgiveDeadWord(puppet, *instruction, native, boosted);
    check("boosted", boosted, counts_.boosted);
    check("stepped", stepped, counts_.stepped);
    for (const Outcome& caught : RunCaught(puppet, *instruction, arena, state)) {
      check("caught", caught, counts_.caught);
    }
    ExpectNoExcuse(*instruction, native, emulated, boosted.ran || stepped.ran, arena);
    return counts_.differences == before;
  }

  // A mechanism that declines for no reason would pass every comparison.
  void ExpectNoExcuse(const Instruction& instruction, const Outcome& native,
                      const Outcome& emulated, bool has_copy, uint64_t arena) {
    if (instruction.execution == Execution::kEmulate && native.finished) {
      EXPECT_TRUE(emulated.ran) << "not emulated: " << instruction.text;
    }
    if (arena != layout::kRemoteArena) {
      EXPECT_TRUE(has_copy) << "no copy: " << instruction.text;
    }
  }

  void Check(const char* mechanism, const std::string& form, const Instruction& instruction,
             const Outcome& native, const Outcome& other, const Puppet& puppet, uint64_t arena,
             size_t& count) {
    if (!other.ran) return;
    ++count;
    std::string difference = Difference(native, other, puppet.base() + layout::kInstruction,
                                        puppet.base() + arena + layout::kCopyInArena);
    if (difference.empty()) return;
    ++counts_.differences;
    ADD_FAILURE() << mechanism << ": " << instruction.text << " [" << ToHex(instruction.code())
                  << "] (" << form << "):" << difference;
  }

  void Print() const {
    fmt::print(
        "[   COUNT  ] {}: {} forms ({} refused), {} native executions ({} without a fault), "
        "{} emulated, {} boosted, {} stepped, {} caught in a copy, {} differences\n",
        name_, counts_.forms, counts_.refused, counts_.native, counts_.native_finished,
        counts_.emulated, counts_.boosted, counts_.stepped, counts_.caught, counts_.differences);
    for (const auto& [why, count] : counts_.skipped) {
      fmt::print("[   COUNT  ]   skipped {} forms of {}\n", count, why);
    }
  }

  std::string name_;
  uint64_t seed_;
  std::unique_ptr<Puppet> high_;
  std::unique_ptr<Puppet> low_;
  Counts counts_;
};

TEST(ExecutionTest, FormsOfTheLibrariesOfThisSystem) {
  Comparison comparison("libraries");
  ASSERT_TRUE(comparison.Ready());
  Forms forms;
  for (const TextSection& text : LibraryTexts())
    CollectForms(text.bytes, forms);
  comparison.RunAll(forms, 3);
  EXPECT_GT(comparison.counts().forms, 1000u);
}

TEST(ExecutionTest, LegacyEncodings) {
  Comparison comparison("legacy encodings");
  ASSERT_TRUE(comparison.Ready());
  Forms forms;
  EnumerateLegacyForms(forms);
  comparison.RunAll(forms, 2);
}

TEST(ExecutionTest, VexEncodings) {
  Comparison comparison("VEX encodings");
  ASSERT_TRUE(comparison.Ready());
  Forms forms;
  EnumerateVexForms(forms);
  comparison.RunAll(forms, 2);
}

TEST(ExecutionTest, EvexEncodings) {
  Comparison comparison("EVEX encodings");
  ASSERT_TRUE(comparison.Ready());
  Forms forms;
  EnumerateEvexForms(forms);
  comparison.RunAll(forms, 1);
}

}  // namespace
}  // namespace probed::arch
