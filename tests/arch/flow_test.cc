// Rules and tactics, one function at a time, made of bytes.

#include "engine/arch/x86_64/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/arch/hex.h"

namespace probed::arch {
namespace {

constexpr uint64_t kText = 0x401000;
constexpr uint64_t kData = 0x500000;
constexpr const char* kInt3s = " cc cc cc cc cc cc cc cc";

// A module of one code segment and one of data.
struct Module {
  std::vector<uint8_t> text;
  std::vector<uint8_t> data;
  ModuleImage image;

  explicit Module(const std::string& hex) : text(Hex(hex)) {
    image.functions.push_back({kText, kText + text.size()});
  }

  std::shared_ptr<const FlowMap> Analyze() {
    image.segments = {{.address = kText, .bytes = text, .executable = true},
                      {.address = kData, .bytes = data, .executable = false}};
    return FlowMap::Analyze(image).value();
  }

  template <class Integer>
  void AddData(Integer value) {
    data.resize(data.size() + sizeof value);
    std::memcpy(&data[data.size() - sizeof value], &value, sizeof value);
  }
};

PatchPlan PlanOf(const std::string& hex, uint64_t offset = 0) {
  return Module(hex).Analyze()->Plan(kText + offset);
}

TEST(FlowTest, AJumpDisplacesWholeInstructions) {
  PatchPlan plan = PlanOf("55 48 89 e5 48 83 ec 10 c9 c3");  // push; mov; sub; leave; ret
  EXPECT_EQ(plan.tactic, Tactic::kJump);
  EXPECT_EQ(plan.jump_length, 5);
  ASSERT_EQ(plan.region.size(), 3u);
  EXPECT_EQ(plan.region[2].text, "sub $0x10, %rsp");
}

TEST(FlowTest, NoJumpWhereSomethingBranchesIntoTheRegion) {
  // push %rbx; dec %edi; test %edi,%edi; jne to the dec; pop; ret
  PatchPlan plan = PlanOf("53 ff cf 85 ff 75 fa 5b c3");
  EXPECT_NE(plan.tactic, Tactic::kJump);
  EXPECT_EQ(plan.rule, Rule::kEntered);
  EXPECT_EQ(plan.why, "control may arrive at +1, in the middle of the displaced instructions");
  // The start itself may be a target: it becomes the jump.
  EXPECT_EQ(PlanOf("ff cf 85 ff 75 fa 5b c3").tactic, Tactic::kJump);
}

TEST(FlowTest, EveryKindOfEntryCounts) {
  const char* const kInto3[] = {
      "90 90 90 90 90 90 c3 eb fa",                    // jmp
      "90 90 90 90 90 90 c3 e3 fa",                    // jrcxz
      "90 90 90 90 90 90 c3 e8 f7 ff ff ff",           // call
      "90 90 90 90 90 90 c3 48 8d 05 f5 ff ff ff c3",  // lea
      "90 90 90 90 90 90 c3 c7 f8 f6 ff ff ff c3",     // xbegin
      "90 90 90 f3 0f 1e fa c3",                       // endbr64
  };
  for (const char* hex : kInto3)
    EXPECT_EQ(PlanOf(hex).rule, Rule::kEntered) << hex;
}

TEST(FlowTest, LandingPadsSymbolsAndRelocationsAreEntries) {
  Module module("90 90 90 90 90 90 c3");
  module.image.entries.push_back(kText + 3);
  auto flow = module.Analyze();
  EXPECT_TRUE(flow->IsEntered(kText + 3));
  EXPECT_FALSE(flow->IsEntered(kText + 2));
  EXPECT_EQ(flow->Plan(kText).rule, Rule::kEntered);
}

TEST(FlowTest, PointersInDataAreEntries) {
  Module module("90 90 90 90 90 90 c3");
  module.AddData<uint64_t>(kText + 3);
  EXPECT_EQ(module.Analyze()->Plan(kText).rule, Rule::kEntered);
}

TEST(FlowTest, ConstantsAreEntriesWhereTheModuleIsFixed) {
  Module module("90 90 90 90 90 90 bf 03 10 40 00 c3");  // mov $0x401003,%edi
  EXPECT_EQ(module.Analyze()->Plan(kText).tactic, Tactic::kJump);
  module.image.position_independent = false;
  EXPECT_EQ(module.Analyze()->Plan(kText).rule, Rule::kEntered);
}

// lea table(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax; then the cases
constexpr const char* kSwitch =
    "48 8d 15 f9 ef 0f 00 48 63 04 82 48 01 d0 ff e0 "
    "90 90 90 90 90 90 c3";

TEST(FlowTest, JumpTablesAreFollowed) {
  Module module(kSwitch);
  module.AddData<int32_t>(static_cast<int32_t>(kText + 16 - kData));
  module.AddData<int32_t>(static_cast<int32_t>(kText + 18 - kData));
  module.AddData<int32_t>(0x12345678);
  auto flow = module.Analyze();
  EXPECT_TRUE(flow->IsEntered(kText + 16));
  EXPECT_TRUE(flow->IsEntered(kText + 18));
  EXPECT_FALSE(flow->IsEntered(kText + 17));
  EXPECT_EQ(flow->Plan(kText + 16).rule, Rule::kEntered);
}

TEST(FlowTest, ATableMayBeginBehindItsBase) {
  Module module(kSwitch);
  module.AddData<int32_t>(1);  // cases that do not occur
  module.AddData<int32_t>(2);
  module.AddData<int32_t>(static_cast<int32_t>(kText + 18 - kData));
  EXPECT_TRUE(module.Analyze()->IsEntered(kText + 18));
}

TEST(FlowTest, WithoutItsTableTheCodeBehindAnIndirectJumpIsInDoubt) {
  PatchPlan plan = PlanOf(kSwitch, 17);
  EXPECT_NE(plan.tactic, Tactic::kJump);
  EXPECT_EQ(plan.rule, Rule::kDoubt);
  EXPECT_EQ(PlanOf(kSwitch, 0).tactic, Tactic::kJump);  // one whole instruction of 7 bytes
}

TEST(FlowTest, AFunctionThatMayComputeItsJumpsIsInDoubt) {
  // lea of the code behind; add; jmp *%rax; 6 nops; ret
  PatchPlan plan = PlanOf("48 8d 05 05 00 00 00 48 01 f8 ff e0 90 90 90 90 90 90 c3", 7);
  EXPECT_EQ(plan.rule, Rule::kDoubt);
  EXPECT_EQ(plan.why, "the function may compute where it jumps");
}

TEST(FlowTest, AFunctionWithBytesThatAreNoInstructionIsInDoubt) {
  EXPECT_EQ(PlanOf("90 90 90 90 90 90 c3 06 06 06 06").rule, Rule::kDoubt);
}

// The jump over a lock prefix: code begins in the middle of an instruction.
TEST(FlowTest, OverlappingCodeIsReadFromItsEntryToo) {
  // 0: je +1 (to 3); 2: lock cmpxchg %ecx,(%rdi); 6: jne -5 (to 3); 8: nops
  Module module("74 01 f0 0f b1 0f 75 fb 90 90 90 90 c3");
  auto flow = module.Analyze();
  EXPECT_TRUE(flow->IsEntered(kText + 3));
  EXPECT_TRUE(flow->IsStart(kText + 2));
  EXPECT_FALSE(flow->IsStart(kText + 3));
  EXPECT_EQ(flow->Plan(kText).rule, Rule::kEntered);
  EXPECT_EQ(flow->Plan(kText + 2).rule, Rule::kEntered);
  EXPECT_EQ(flow->Plan(kText + 3).rule, Rule::kNotAStart);
}

TEST(FlowTest, PaddingBehindAShortFunctionMayBeReplaced) {
  Module module("31 c0 c3 90 0f 1f 40 00 55 5d c3");  // xor; ret; nop; nopl; push; pop; ret
  module.image.functions = {{kText, kText + 3}, {kText + 8, kText + 11}};
  PatchPlan plan = module.Analyze()->Plan(kText);
  EXPECT_EQ(plan.tactic, Tactic::kJump);
  EXPECT_EQ(plan.region.size(), 2u);
  EXPECT_EQ(module.Analyze()->Plan(kText + 8).rule, Rule::kFunctionTooShort);
}

TEST(FlowTest, PaddingThatIsEnteredMayNot) {
  Module module("31 c0 c3 90 90 90 90 90 c3");
  module.image.functions = {{kText, kText + 3}};
  module.image.entries = {kText + 4};
  PatchPlan plan = module.Analyze()->Plan(kText);
  EXPECT_NE(plan.tactic, Tactic::kJump);
  EXPECT_EQ(plan.rule, Rule::kFunctionTooShort);
}

TEST(FlowTest, AnotherFunctionMayNot) {
  Module module("31 c0 c3 55 5d c3 90 90 90");
  module.image.functions = {{kText, kText + 3}, {kText + 3, kText + 6}};
  EXPECT_EQ(module.Analyze()->Plan(kText).rule, Rule::kFunctionTooShort);
}

TEST(FlowTest, ACallThatIsNotTheLastMayNotBeDisplaced) {
  PatchPlan plan = PlanOf("ff d0 90 90 90 90 90 c3");
  EXPECT_EQ(plan.rule, Rule::kNotRelocatable);
  EXPECT_EQ(plan.why, "call %rax: its return address would be displaced");
  EXPECT_EQ(PlanOf("53 e8 00 00 00 00 5b c3").tactic, Tactic::kJump);
  // A call that the function ends with does return, for all that is known.
  Module module("90 ff d0 cc cc cc cc cc");
  module.image.functions = {{kText, kText + 3}};
  EXPECT_NE(module.Analyze()->Plan(kText).tactic, Tactic::kJump);
}

TEST(FlowTest, EndbrIsDisplaced) {
  PatchPlan plan = PlanOf("f3 0f 1e fa 55 48 89 e5 5d c3");
  EXPECT_EQ(plan.tactic, Tactic::kJump);
  EXPECT_EQ(plan.region.size(), 2u);
}

TEST(FlowTest, NoJumpOverWhatOnlyOneDecoderKnows) {
  // vgf2p8mulb, which Capstone 4.0.2 does not know
  EXPECT_EQ(PlanOf("c4 e2 71 cf c2 c3").rule, Rule::kUndecodable);
}

TEST(FlowTest, AShortJumpGoesToAnIslandOfPadding) {
  // dec %edi; jne to itself + 2 (entered); the function ends, and int3 follow
  Module module("ff cf 85 ff 75 fc c3" + std::string(kInt3s));
  module.image.functions = {{kText, kText + 7}};
  PatchPlan plan = module.Analyze()->Plan(kText);
  EXPECT_EQ(plan.rule, Rule::kEntered);
  EXPECT_EQ(plan.tactic, Tactic::kShortJump);
  EXPECT_EQ(plan.jump_length, 2);
  EXPECT_EQ(plan.island, kText + 10);
  ASSERT_EQ(plan.region.size(), 1u);
}

TEST(FlowTest, IslandsMustBeReachable) {
  auto island = [](size_t nops) {
    Module module("ff cf 85 ff 75 fc" + std::string(3 * nops, ' ') + "c3" + kInt3s);
    module.text.insert(module.text.begin() + 6, nops, 0x90);
    module.image.functions = {{kText, kText + 7 + nops}};
    return module.Analyze()->Plan(kText);
  };
  EXPECT_EQ(island(122).island, kText + 129);  // 2 + 127
  EXPECT_EQ(island(123).tactic, Tactic::kPunned);
}

TEST(FlowTest, APunnedJumpEndsInTheBytesThatFollow) {
  // 3-byte add; then an entered 3-byte sub with a ModRM of 0xef; jne to it
  PatchPlan plan = PlanOf("48 01 f8 48 29 30 75 fb c3");
  EXPECT_EQ(plan.tactic, Tactic::kPunned);
  EXPECT_EQ(plan.jump_length, 5);
  EXPECT_EQ(plan.fixed_bytes, 2);
  // e9 ?? ?? 48 29: 0x29480000 + two free bytes
  EXPECT_EQ(plan.low, kText + 5 + 0x29480000);
  EXPECT_EQ(plan.high, kText + 5 + 0x29490000);
  ASSERT_EQ(plan.region.size(), 1u);
}

TEST(FlowTest, APunnedJumpMayGoBack) {
  // dec %rdi; then an entered mov that begins with 48 89; jne to it
  Module module("90 90 90 90 90 48 ff cf 48 89 c8 75 fb c3");
  PatchPlan plan = module.Analyze()->Plan(kText + 5);
  EXPECT_EQ(plan.fixed_bytes, 2);
  EXPECT_EQ(static_cast<int64_t>(plan.low - (kText + 10)), int32_t(0x89480000));
}

TEST(FlowTest, APunnedJumpOfAFixedModuleStaysInUserSpace) {
  Module module("90 90 90 90 90 48 ff cf 48 89 c8 75 fb c3");
  module.image.position_independent = false;
  EXPECT_EQ(module.Analyze()->Plan(kText + 5).tactic, Tactic::kNone);
}

TEST(FlowTest, RefusesWhereNoFunctionIsKnown) {
  Module module("90 90 90 90 90 c3 90 90 90 90 90 c3");
  module.image.functions = {{kText, kText + 6}};
  EXPECT_EQ(module.Analyze()->Plan(kText + 6).rule, Rule::kNoFunction);
  EXPECT_EQ(module.Analyze()->Plan(0x1234).rule, Rule::kNoFunction);
}

TEST(FlowTest, ListsInstructions) {
  auto flow = Module("55 48 89 e5 c3").Analyze();
  EXPECT_EQ(flow->NextStart(kText), kText + 1);
  EXPECT_EQ(flow->NextStart(kText + 1), kText + 4);
  EXPECT_EQ(flow->NextStart(kText + 4), std::nullopt);
  EXPECT_EQ(flow->totals().instructions, 3u);
}

TEST(FlowTest, AModuleWithoutCodeIsAnError) {
  EXPECT_EQ(FlowMap::Analyze({}).error().reason, "NO_CODE");
}

// Any bytes, any ranges: it ends, and what it allows keeps the rules.
TEST(FlowTest, RandomModulesAreBounded) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    Module module("90");
    module.text.resize(4096);
    std::generate(module.text.begin(), module.text.end(),
                  [&] { return static_cast<uint8_t>(random()); });
    for (int i = 0; i < 64; ++i)
      module.AddData<int32_t>(static_cast<int32_t>(kText + random() % 4096 - kData));
    module.image.position_independent = random() % 2 == 0;
    for (int i = 0; i < 10; ++i) {
      uint64_t start = kText - 8 + random() % 4200;
      module.image.functions.push_back({start, start + random() % 500 - 5});
    }
    auto flow = module.Analyze();
    for (auto at = std::optional(kText); at.has_value(); at = flow->NextStart(*at)) {
      PatchPlan plan = flow->Plan(*at);
      if (plan.tactic != Tactic::kJump) continue;
      for (uint64_t inside = *at + 1; inside < *at + 5; ++inside)
        ASSERT_FALSE(flow->IsEntered(inside));
    }
  }
}

}  // namespace
}  // namespace probed::arch
