// Calls that are left without a return are told, each once, in the counters and in the stream: as
// many as the program counts itself.

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

const char* const kFunctions[] = {"catcher", "descend", "plain", "bottom",
                                  "cleaner", "compare", "relay"};

struct Calls {
  uint64_t entered = 0, returned = 0;
};

// With true: all are jumps before the program goes on.
class UnwoundTest : public EngineTest, public ::testing::WithParamInterface<bool> {
 protected:
  UnwoundTest() : EngineTest(Options()) {
    for (const char* function : kFunctions)
      probes_[function] =
          Define(target_, fmt::format("r:t/{0} {1}:{0} $retval:s32", function, puppet_.path()));
    if (!GetParam()) return;
    for (const auto& [function, probe] : probes_)
      EXPECT_TRUE(BecomesOptimized(probe));
  }
  static EngineOptions Options() {
    EngineOptions options;
    options.optimization.enabled = GetParam();
    options.optimization.ring_bytes = 8u << 20;
    return options;
  }

  // What the program has counted up to now.
  void Ask(const std::string& line) {
    std::istringstream answer(puppet_.Ask(line));
    std::string function;
    Calls calls;
    while (answer >> function >> calls.entered >> calls.returned)
      calls_[function] = calls;
    ASSERT_EQ(calls_.size(), std::size(kFunctions));
  }
  // Counters and stream against the program. `waiting`: of each of them so many calls go on, or
  // were given up by us.
  void Check(const std::map<std::string, uint64_t>& waiting = {}) {
    TakeEvents();
    for (const auto& [function, probe] : probes_) {
      auto [entered, returned] = calls_[function];
      const uint64_t on = waiting.contains(function) ? waiting.at(function) : 0;
      const uint64_t left = entered - returned - on;
      ProbeCounters counters = Counters(probe);
      EXPECT_EQ(counters.hits, entered) << function;
      EXPECT_EQ(counters.recorded, returned) << function;
      EXPECT_EQ(counters.unwound, left) << function;
      EXPECT_EQ(told_[probe], left) << function;
      EXPECT_EQ(shown_[probe], returned) << function;
    }
  }
  void TakeEvents() {
    std::vector<event::Item> items = Drain();
    while (true) {  // what waits to be told with more
      auto more = events_->Next(4096, std::chrono::milliseconds(100));
      if (more.empty()) break;
      std::move(more.begin(), more.end(), std::back_inserter(items));
    }
    for (const auto& item : items) {
      const auto* change = std::get_if<event::TargetNotice>(&item);
      if (change != nullptr && change->change == event::TargetChange::kExited) ended_ = true;
      if (change != nullptr && change->change == event::TargetChange::kDetached) ended_ = true;
      if (const auto* hit = std::get_if<event::HitRecord>(&item)) ++shown_[hit->probe];
      const auto* unwound = std::get_if<event::UnwoundNotice>(&item);
      if (unwound == nullptr) continue;
      EXPECT_FALSE(ended_) << "behind the end of the target";
      EXPECT_EQ(unwound->target.pid, puppet_.pid());
      told_[unwound->probe] += unwound->calls;
      ++notices_;
    }
  }
  // Of the target, in the stream.
  void WaitForEnd() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!ended_ && std::chrono::steady_clock::now() < deadline)
      TakeEvents();
    EXPECT_TRUE(ended_);
  }
  uint64_t Missed(const std::string& function) { return Counters(probes_[function]).missed; }

  Puppet puppet_{"abandoning"};
  TargetId target_ = Attach(puppet_);
  std::map<std::string, ProbeId> probes_;
  std::map<std::string, Calls> calls_;
  std::map<ProbeId, uint64_t> told_, shown_;
  int notices_ = 0;
  bool ended_ = false;
};

INSTANTIATE_TEST_SUITE_P(Mechanism, UnwoundTest, ::testing::Bool(), [](const auto& mechanism) {
  return mechanism.param ? "Jump" : "Breakpoint";
});

TEST_P(UnwoundTest, CallsThatReturnAreNot) {
  Ask("return 20 100");
  Detach(target_);
  Check();
}

TEST_P(UnwoundTest, ExceptionsThatAreThrownOnIn) {
  Ask("throw 20 5");
  Ask("throw 3 100");
  Ask("return 5 5");
  Detach(target_);
  Check();
}

TEST_P(UnwoundTest, ExceptionsAcrossALibrary) {
  Ask("library 20 5");
  Detach(target_);
  Check();
}

// Real return addresses were shown to the unwinder, which then went nowhere.
TEST_P(UnwoundTest, ExceptionsThatNobodyHandles) {
  Ask("unhandled 10 5");
  Detach(target_);
  Check();
  for (const auto& [function, probe] : probes_)
    EXPECT_EQ(Missed(function), 0u) << function;
}

TEST_P(UnwoundTest, Longjmp) {
  Ask("longjmp 20 5");
  Ask("return 5 5");
  Ask("longjmp 2 100");
  Detach(target_);
  Check();
}

// Until then frames that nothing has overwritten look as if they might return.
TEST_P(UnwoundTest, WhatIsBelowTheStackPointerIsToldWhenItsProbeIsDisabled) {
  Ask("longjmp 1 20");
  std::vector<ProbeId> all;
  for (const auto& [function, probe] : probes_)
    all.push_back(probe);
  ASSERT_TRUE(engine_->SetProbesEnabled(all, false).ok());
  Check();
}

TEST_P(UnwoundTest, ThreadsThatEndFromBelow) {
  Ask("exit 10 5");
  Ask("cancel 5 5");
  Detach(target_);
  Check();
}

// What nobody has told when the program ends is told then, before its end is.
TEST_P(UnwoundTest, TheEndOfTheProgramTellsTheRest) {
  Ask("longjmp 3 20");
  Ask("exit 3 5");
  puppet_.CloseInput();
  ASSERT_NE(puppet_.Wait(), -1);
  WaitForEnd();
  Check();
}

TEST_P(UnwoundTest, SuspendedCoroutinesAreNot) {
  Ask("suspend 1 10");
  Ask("throw 3 10");
  Ask("resume 1 10");
  Check();
  Ask("suspend 1 10");
  Ask("throw 3 10");
  Detach(target_);
  Check({{"plain", 11}, {"bottom", 1}});
}

// There a coroutine's stack may be anywhere, so not all that longjmp has left is certain to be
// dead.
TEST_P(UnwoundTest, NeverTooManyWhereContextsAreSwitched) {
  Ask("suspend 1 10");
  Ask("longjmp 3 10");
  Detach(target_);
  TakeEvents();
  for (const char* function : {"plain", "bottom"}) {
    const ProbeId probe = probes_[function];
    const auto [entered, returned] = calls_[function];
    EXPECT_EQ(told_[probe], Counters(probe).unwound) << function;
    EXPECT_GT(told_[probe], 0u) << function;
    EXPECT_LT(told_[probe], entered - returned) << function;
  }
}

TEST_P(UnwoundTest, AProgramThatThrowsAllTheTimeTellsItNowAndThen) {
  Ask("throw 2000 2");
  Detach(target_);
  Check();
  EXPECT_GT(notices_, 0);
  EXPECT_LT(notices_, 1000);
}

}  // namespace
}  // namespace probed::engine
