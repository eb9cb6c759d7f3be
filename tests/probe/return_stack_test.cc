// Frames are paired by stack slot, and every outstanding return is accounted for.

#include "engine/probe/return_stack.h"

#include <gtest/gtest.h>

namespace probed::probe {
namespace {

class ReturnStackTest : public testing::Test {
 protected:
  PendingReturn Frame(uint64_t slot, uint64_t real_return, bool chained = false) {
    PendingReturn frame;
    frame.slot = slot;
    frame.real_return = real_return;
    frame.chained = chained;
    frame.probes.emplace_back(probe_);
    return frame;
  }
  std::shared_ptr<Probe> probe_ = std::make_shared<Probe>();
  ReturnStack stack_;
};

TEST_F(ReturnStackTest, ReturnsInAnyOrderFindTheirOwnFrame) {
  for (uint64_t i = 0; i < 10; ++i)
    stack_.Push(Frame(1000 - 8 * i, i));
  for (uint64_t i : {3, 9, 0, 5}) {  // two coroutines' stacks may interleave like this
    auto frames = stack_.Take(1000 - 8 * i);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].real_return, i);
    frames[0].probes[0].Finish();
  }
  EXPECT_EQ(stack_.size(), 6u);
  EXPECT_EQ(probe_->outstanding, 6u);
  EXPECT_EQ(probe_->counters.missed, 0u);
}

TEST_F(ReturnStackTest, AChainOfTailCallsReturnsAtOnceInnermostFirst) {
  stack_.Push(Frame(100, 7));
  stack_.Push(Frame(100, 7, /*chained=*/true));
  stack_.Push(Frame(100, 7, /*chained=*/true));
  EXPECT_EQ(stack_.Take(100).size(), 3u);
  EXPECT_TRUE(stack_.empty());
}

TEST_F(ReturnStackTest, AStaleFrameUnderAFreshOneIsNotTaken) {
  stack_.Push(Frame(100, 1));
  stack_.Push(Frame(100, 2));
  auto frames = stack_.Take(100);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].real_return, 2u);
}

TEST_F(ReturnStackTest, AFreshCallKillsWhatWaitedInItsSlot) {
  stack_.Push(Frame(100, 1));
  stack_.DropAt(100);
  EXPECT_TRUE(stack_.Take(100).empty());
  EXPECT_EQ(probe_->outstanding, 0u);
  EXPECT_EQ(probe_->counters.missed, 1u);
}

TEST_F(ReturnStackTest, ReapsOnlyOverwrittenFramesBelowTheStackPointer) {
  stack_.Push(Frame(200, 1));
  stack_.Push(Frame(100, 2));
  stack_.Push(Frame(50, 3));
  stack_.Reap(150, [](const PendingReturn&) { return true; });
  EXPECT_EQ(stack_.size(), 3u);
  stack_.Reap(150, [](const PendingReturn& frame) { return frame.slot == 100; });
  EXPECT_EQ(stack_.size(), 2u);
  stack_.Reap(150, [](const PendingReturn&) { return false; });
  EXPECT_EQ(stack_.size(), 1u);
  EXPECT_EQ(probe_->counters.missed, 2u);
  EXPECT_EQ(probe_->counters.unwound, 0u) << "that is for who takes them off to say";
}

// Of a coroutine, whose stack lies elsewhere, an unwinder has only seen the address.
TEST_F(ReturnStackTest, ReapsWhatAnUnwinderHasGonePast) {
  auto alive = [](const PendingReturn&) { return true; };
  for (bool walked : {false, true}) {
    PendingReturn frame = Frame(100, 1);
    frame.lifted = true;
    frame.walked = walked;
    stack_.Push(std::move(frame));
    stack_.Push(Frame(100, 1, /*chained=*/true));
    EXPECT_EQ(stack_.Reap(150, alive).size(), walked ? 2u : 0u);
    stack_.Clear();
  }
}

TEST_F(ReturnStackTest, ACallThatIsLeftIsMissedAndUnwound) {
  stack_.Push(Frame(100, 1));
  stack_.frames()[0].probes.push_back(stack_.frames()[0].probes[0].Inherit());
  for (auto& frame : stack_.DropAt(100)) {
    EXPECT_TRUE(frame.probes[0].Unwind());
    EXPECT_FALSE(frame.probes[1].Unwind());
  }
  EXPECT_EQ(probe_->counters.unwound, 1u);
  EXPECT_EQ(probe_->counters.missed, 1u);
}

TEST_F(ReturnStackTest, AnInheritedReturnIsNotMissed) {
  OutstandingReturn parent(probe_);
  {
    OutstandingReturn child = parent.Inherit();
    EXPECT_EQ(probe_->outstanding, 2u);
  }
  EXPECT_EQ(probe_->outstanding, 1u);
  EXPECT_EQ(probe_->counters.missed, 0u);
  parent.Finish();
  EXPECT_EQ(probe_->outstanding, 0u);
}

}  // namespace
}  // namespace probed::probe
