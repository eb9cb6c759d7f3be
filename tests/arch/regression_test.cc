// What the differential tests found once, and forms whose states must be chosen by hand.

#include <gtest/gtest.h>

#include <cstring>

#include "tests/arch/hex.h"
#include "tests/arch/mechanisms.h"
#include "tests/arch/random_state.h"

namespace probed::arch {
namespace {

constexpr uint64_t kBase = 0x2000'1000'0000;
constexpr uint64_t kOriginal = kBase + layout::kInstruction;
constexpr uint64_t kArena = layout::kFarArena;
constexpr uint64_t kCopy = kBase + kArena + layout::kCopyInArena;
constexpr uint64_t kStackTop = kBase + layout::kStack + 4096;

class RegressionTest : public testing::Test {
 protected:
  void SetUp() override {
    puppet_ = Puppet::Create(kBase);
    ASSERT_NE(puppet_, nullptr);
  }

  // A random state with a usable stack for the instruction in `hex`.
  MachineState Prepare(const char* hex) {
    code_ = Hex(hex);
    MachineState state = RandomState(puppet_->initial(), kBase, 7).Make(code_);
    code_ = Hex(hex);
    state.regs.rsp = kStackTop;
    return state;
  }

  void StoreAt(MachineState& state, uint64_t address, uint64_t value) {
    std::memcpy(&state.memory[layout::StackInImage(kBase, address)], &value, sizeof value);
  }

  Outcome ExpectSame(const MachineState& state) {
    Instruction instruction = Decode(code_, kOriginal).value();
    Outcome native = RunNative(*puppet_, code_, state);
    std::vector<Outcome> others = RunCaught(*puppet_, instruction, kArena, state);
    others.push_back(RunEmulated(*puppet_, instruction, state));
    others.push_back(RunBoosted(*puppet_, instruction, kArena, state));
    others.push_back(RunStepped(*puppet_, instruction, kArena, state));
    for (Outcome& other : others) {
      if (!other.ran) continue;
      // AMD's processors look at a call's target before they push.
      if (__builtin_cpu_is("amd") != 0) ForgiveDeadWord(*puppet_, instruction, native, other);
      EXPECT_EQ(Difference(native, other, kOriginal, kCopy), "");
    }
    return native;
  }

  std::unique_ptr<Puppet> puppet_;
  std::vector<uint8_t> code_;
};

// Intel's processors have pushed the return address when they find that the target is not
// canonical.
TEST_F(RegressionTest, ACallToNowhereLeavesTheOriginalReturnAddressBelowTheStack) {
  for (const char* hex : {"ff d0", "ff 14 24"}) {  // call *%rax, call *(%rsp)
    MachineState state = Prepare(hex);
    state.regs.rax = 0x8000'0000'0000'0000;
    StoreAt(state, kStackTop, state.regs.rax);
    EXPECT_EQ(ExpectSame(state).signal, SIGSEGV) << hex;
  }
}

// The kernel would show the trap flag of the step as the program's own.
TEST_F(RegressionTest, APopfThatFaultsDoesNotSetTheTrapFlag) {
  MachineState state = Prepare("9d");
  state.regs.rsp = kBase + layout::kStack + layout::kStackSize;
  EXPECT_FALSE(ExpectSame(state).finished);
}

TEST_F(RegressionTest, APopfMaySetTheTrapFlag) {
  MachineState state = Prepare("9d");
  StoreAt(state, kStackTop, 0x302);
  EXPECT_NE(ExpectSame(state).state.regs.eflags & 0x100, 0u);
}

// The trap flag that a popf sets traps behind the instruction after it, and one that was set before
// behind the popf itself, wherever the popf is executed.
TEST_F(RegressionTest, ATrapFlagTrapsAtTheSamePlaceAfterAPopf) {
  struct Case {
    uint64_t before, popped;
    uint64_t rip;
  };
  for (const Case& flags : {Case{0x202, 0x302, kOriginal + 2}, Case{0x302, 0x202, kOriginal + 1},
                            Case{0x302, 0x302, kOriginal + 1}}) {
    MachineState state = Prepare("9d 90");  // popf; nop
    state.regs.eflags = flags.before;
    StoreAt(state, kStackTop, flags.popped);
    Stop native_stop, stop;
    puppet_->FillCode(code_);
    puppet_->SetState(state);
    ASSERT_TRUE(puppet_->Continue(native_stop));
    user_regs_struct native = puppet_->GetState().regs;
    EXPECT_EQ(native.rip, flags.rip);
    EXPECT_EQ(native_stop.code, TRAP_TRACE);

    Instruction instruction = Decode(code_, kOriginal).value();
    OutOfLineCopy copy = BuildCopy(instruction, kOriginal, kCopy).value();
    puppet_->FillArena(kArena, copy.code);
    state.regs.rip = kCopy;
    puppet_->SetState(state);
    ASSERT_TRUE(puppet_->Continue(stop));
    MachineState now = puppet_->GetState();
    bool has_reached_trap = stop.code == SI_KERNEL;
    EXPECT_EQ(has_reached_trap, (flags.before & 0x100) == 0);
    if (has_reached_trap) --now.regs.rip;
    ASSERT_TRUE(LeaveCopy(copy, instruction, kOriginal, kCopy, now.regs));
    if (has_reached_trap) {
      puppet_->SetState(now);
      ASSERT_TRUE(puppet_->Continue(stop));
      now = puppet_->GetState();
    }
    EXPECT_EQ(stop.code, native_stop.code);
    EXPECT_EQ(now.regs.rip, native.rip);
    EXPECT_EQ(now.regs.eflags, native.eflags);
    EXPECT_EQ(now.regs.rsp, native.rsp);
  }
}

TEST_F(RegressionTest, PushfDoesNotSeeTheTrapFlagOfAStep) {
  ExpectSame(Prepare("9c"));
}

TEST_F(RegressionTest, ASyscallKeepsRcxAndR11) {
  MachineState state = Prepare("0f 05");
  state.regs.rax = 39;  // getpid
  Outcome native = ExpectSame(state);
  EXPECT_EQ(native.state.regs.rax, static_cast<uint64_t>(puppet_->pid()));
  EXPECT_EQ(native.state.regs.rcx, kOriginal + 2);
}

// Misaligned accesses fault when the program has set AC; emulation must not paper over that.
TEST_F(RegressionTest, AlignmentChecksAreKept) {
  MachineState state = Prepare("50");  // push %rax
  state.regs.eflags |= 1 << 18;
  state.regs.rsp = kStackTop + 1;
  EXPECT_EQ(ExpectSame(state).signal, SIGBUS);
}

TEST_F(RegressionTest, AStackPointerThatIsNotCanonicalGivesSigbus) {
  for (const char* hex : {"50", "5d", "c3", "e8 00 01 00 00", "ff d0", "ff 30"}) {
    MachineState state = Prepare(hex);
    state.regs.rsp = 0x8000'0000'0000'0000;
    EXPECT_EQ(ExpectSame(state).signal, SIGBUS) << hex;
  }
}

TEST_F(RegressionTest, DivisionByZeroNamesTheOriginalInstruction) {
  MachineState state = Prepare("f7 f9");  // idiv %ecx
  state.regs.rcx = 0;
  Outcome native = ExpectSame(state);
  EXPECT_EQ(native.signal, SIGFPE);
  EXPECT_EQ(native.signal_address, kOriginal);
}

// On processors without transactions this is SIGILL; with them every run ends in an abort, because
// int3 stands behind the instruction.
TEST_F(RegressionTest, ATransactionAbortsToTheOriginalTarget) {
  MachineState state = Prepare("c7 f8 20 00 00 00");  // xbegin +0x20
  Instruction instruction = Decode(code_, kOriginal).value();
  Outcome native = RunNative(*puppet_, code_, state);
  Outcome boosted = RunBoosted(*puppet_, instruction, kArena, state);
  EXPECT_EQ(boosted.state.regs.rip, native.state.regs.rip);
  EXPECT_EQ(boosted.finished, native.finished);
  boosted.state.regs.rax = native.state.regs.rax;  // why it aborted
  EXPECT_EQ(Difference(native, boosted, kOriginal, kCopy), "");
}

// A program that steps itself: the trap comes from the copy and belongs behind the instruction.
TEST_F(RegressionTest, AProgramThatStepsItselfStopsBehindTheInstruction) {
  for (const char* hex : {"90", "74 10", "75 10", "e8 00 01 00 00", "e2 10", "eb 10", "01 c8"}) {
    MachineState state = Prepare(hex);
    state.regs.eflags |= 0x100;
    Stop stop;
    puppet_->FillCode(code_);
    puppet_->SetState(state);
    ASSERT_TRUE(puppet_->Continue(stop));
    user_regs_struct native = puppet_->GetState().regs;
    Instruction instruction = Decode(code_, kOriginal).value();
    OutOfLineCopy copy = BuildCopy(instruction, kOriginal, kCopy).value();
    puppet_->FillArena(kArena, copy.code);
    state.regs.rip = kCopy;
    puppet_->SetState(state);
    ASSERT_TRUE(puppet_->Continue(stop));
    user_regs_struct regs = puppet_->GetState().regs;
    LeaveCopy(copy, instruction, kOriginal, kCopy, regs);
    EXPECT_EQ(regs.rip, native.rip) << hex;
    EXPECT_EQ(regs.rsp, native.rsp) << hex;
    EXPECT_EQ(regs.eflags, native.eflags) << hex;
    EXPECT_EQ(stop.signal, SIGTRAP);
  }
}

}  // namespace
}  // namespace probed::arch
