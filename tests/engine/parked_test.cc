// Threads that wait for long in a copy of ours of a system call's instruction, or in a detour that
// ends in one: whatever is done meanwhile, they wait on, and what they are told in the end is
// theirs.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

constexpr int kThreads = 4;

bool SleepsInItsCall(const std::filesystem::path& task) {
  std::ifstream status(task / "status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("State:")) return line.find('S') != std::string::npos;
  return false;
}

// All threads of a process, so that none is on its way yet, or back.
bool AllSleep(pid_t pid) {
  const std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", pid));
  return std::all_of(begin(tasks), end(tasks),
                     [](const auto& task) { return SleepsInItsCall(task.path()); });
}

// How they wait, and where the probe is.
class ParkedTest : public EngineTest,
                   public testing::WithParamInterface<std::tuple<const char*, const char*>> {
 protected:
  ParkedTest() : EngineTest(Optimizing()) {}

  ProbeId Park() {
    const auto& [call, place] = GetParam();
    const ProbeId probe = Define(target_, fmt::format("p:t/x {}:{}", puppet_.path(), place));
    std::ignore = Eventually([&] {  // whatever it is to be
      return engine_->GetProbe(probe)->reason.find("becomes a jump") == std::string::npos;
    });
    EXPECT_EQ(puppet_.Ask(fmt::format("{} {}", call, kThreads)), "parked");
    EXPECT_TRUE(Eventually([&] { return Counters(probe).hits == kThreads; }));
    EXPECT_TRUE(Eventually([&] { return AllSleep(puppet_.pid()); }));
    return probe;
  }
  void ExpectTheirCalls() {
    EXPECT_TRUE(Eventually([&] { return AllSleep(puppet_.pid()); }));
    EXPECT_EQ(puppet_.Ask("wake"), std::to_string(kThreads));
  }

  Puppet puppet_{"parked"};
  TargetId target_ = Attach(puppet_);
};

INSTANTIATE_TEST_SUITE_P(Calls, ParkedTest,
                         testing::Combine(testing::Values("read", "epoll"),
                                          testing::Values("the_call", "before_call", "call")),
                         [](const auto& one) {
                           return fmt::format("{}_{}", std::get<0>(one.param),
                                              std::get<1>(one.param));
                         });

TEST_P(ParkedTest, ADetachLeavesThemWaiting) {
  Park();
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
  ExpectTheirCalls();
  puppet_.CloseInput();
  EXPECT_EQ(puppet_.Wait(), 0);
}

TEST_P(ParkedTest, ADeletedProbeLeavesThemWaiting) {
  const ProbeId probe = Park();
  ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  ExpectTheirCalls();
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
}

TEST_P(ParkedTest, AChangeOfTheMechanismLeavesThemWaiting) {
  const ProbeId probe = Park();
  ASSERT_TRUE(engine_->SetOptimization(false).ok());
  ASSERT_TRUE(engine_->SetOptimization(true).ok());
  ExpectTheirCalls();
  EXPECT_EQ(Counters(probe).hits, static_cast<uint64_t>(kThreads));
  EXPECT_EQ(Detach(target_).warning, "");
}

}  // namespace
}  // namespace probed::engine
