// The interpreter and the machine code give the same payload, byte for byte, for any program over
// any memory; and the program's registers are as without the detour.

#include <gtest/gtest.h>

#include <cstring>

#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "tests/detour/random_hit.h"
#include "tests/lang/fake_files.h"
#include "tests/lang/line_generator.h"

namespace probed::detour::testing {
namespace {

using lang::Reg;

constexpr int kHits = 4;  // of one detour

class EquivalenceTest : public RandomHit, public ::testing::WithParamInterface<int> {
 protected:
  EquivalenceTest() : RandomHit(static_cast<uint64_t>(GetParam())) {}

  void Compare(std::span<const DetourProbe> probes) {
    InstalledDetour installed(ring_, probes, kFunction, HasRdpid() && memory_.OneIn(2));
    if (!installed.refusal().empty()) {
      ASSERT_NE(installed.refusal().find("512 KiB"), std::string::npos) << installed.refusal();
      return;
    }
    for (int hit = 0; hit < kHits; ++hit)
      CompareHit(installed, probes);
  }

  struct Expected {
    lang::FetchOutcome outcome;
    std::vector<std::byte> payload;
  };

  static std::vector<Expected> Interpret(std::span<const DetourProbe> probes,
                                         lang::testing::SelfContext context) {
    std::vector<Expected> expected(probes.size());
    for (size_t i = 0; i < probes.size(); ++i) {
      expected[i].outcome =
          lang::Fetch(*probes[i].program, probes[i].limits, context, expected[i].payload);
    }
    return expected;
  }

  void CompareHit(const InstalledDetour& installed, std::span<const DetourProbe> probes) {
    const Registers before = SomeRegisters();
    Registers after = before;
    RunAt(after, installed.original());
    const std::vector<Expected> expected = Interpret(probes, ContextOf(before, installed.site()));
    std::vector<uint64_t> oversize;
    for (uint32_t i = 0; i < probes.size(); ++i)
      oversize.push_back(ring_.counters(i).oversize);

    Registers registers = before;
    installed.Run(registers);
    ASSERT_EQ(registers, after);
    const std::vector<Record> records = ring_.TakeRecords();
    auto record = records.begin();
    for (uint32_t i = 0; i < probes.size(); ++i) {
      const bool dropped = ring_.counters(i).oversize != oversize[i];
      ASSERT_EQ(dropped, expected[i].outcome == lang::FetchOutcome::kDropped)
          << Describe(probes[i]);
      if (dropped) continue;
      ASSERT_NE(record, records.end());
      ASSERT_EQ(record->header.probe, i);
      ASSERT_EQ(record->payload, expected[i].payload) << Describe(probes[i]);
      ++record;
      ++compared_;
    }
  }

  // What lies below the red zone is nobody's, $comm and vectors are the daemon's, and far from the
  // holed memory is what this test itself changes.
  static bool IsComparable(const lang::FetchProgram& program) {
    bool stack = false, below = false, far = false, only_daemon = false;
    for (const lang::FetchOp& op : program.code().ops) {
      stack |=
          op.code == lang::FetchOpcode::kRegister && op.index == static_cast<uint16_t>(Reg::kSp);
      below |= op.offset < -120;
      far |= op.offset > 4096 || op.offset < -4096;
      only_daemon |=
          op.code == lang::FetchOpcode::kStoreComm || op.code == lang::FetchOpcode::kVector;
    }
    return !only_daemon && !far && !(stack && below);
  }

  static std::string Describe(const DetourProbe& probe) {
    std::string text = "kernel rules " + std::to_string(probe.limits.kernel_string_rules) +
                       ", longest " + std::to_string(probe.limits.max_string) + ":";
    for (const lang::FetchOp& op : probe.program->code().ops) {
      text += " {op " + std::to_string(static_cast<int>(op.code)) + " size " +
              std::to_string(op.size) + " shifts " + std::to_string(op.shift_left) + "," +
              std::to_string(op.shift_right) + " count " + std::to_string(op.count) + " index " +
              std::to_string(op.index) + " offset " + std::to_string(op.offset) + " slot " +
              std::to_string(op.slot) + "}";
    }
    return text;
  }

  uint64_t compared_ = 0;
};

TEST_P(EquivalenceTest, RandomPrograms) {
  ProgramGenerator generator(memory_);
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    std::vector<lang::FetchProgram> programs;
    const uint64_t count = memory_.OneIn(4) ? 1 + memory_.Below(4) : 1;
    for (uint64_t i = 0; i < count; ++i)
      programs.push_back(generator.Next());
    std::vector<DetourProbe> probes(programs.size());
    for (size_t i = 0; i < probes.size(); ++i) {
      probes[i] = {.program = &programs[i],
                   .limits = SomeLimits(),
                   .file_base = kFileBase,
                   .index = static_cast<uint32_t>(i)};
    }
    Compare(probes);
  }
  EXPECT_GT(compared_, 500u);
}

TEST_P(EquivalenceTest, RandomDefinitions) {
  lang::testing::FakeFiles files;
  files.AddFile("/bin/x", 1);
  lang::testing::LineGenerator lines(static_cast<uint64_t>(GetParam()), "g",
                                     std::vector<std::string>(6, "/bin/x"));
  for (int round = 0; round < 400 && !HasFatalFailure(); ++round) {
    const auto dialect = memory_.OneIn(2) ? lang::Dialect::kKernel : lang::Dialect::kExtended;
    lang::DefinitionSet set(dialect);
    const auto applied = set.Apply(lines.Next(), files);
    if (!applied.added) continue;
    const auto definition = set.Find(*applied.added);
    if (definition->kind != lang::ProbeKind::kEntry) continue;
    DetourProbe probe{.program = definition->program.get(),
                      .limits = SomeLimits(),
                      .file_base = kFileBase,
                      .index = 0};
    if (IsComparable(*definition->program)) Compare({&probe, 1});
  }
  EXPECT_GT(compared_, 50u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EquivalenceTest, ::testing::Range(0, 10));

}  // namespace
}  // namespace probed::detour::testing
