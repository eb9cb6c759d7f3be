// Letting go of a process that is doing its worst at that moment.

#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>

#include <csignal>
#include <optional>

#include "engine/sys/proc.h"
#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

using std::chrono::steady_clock;

// Stops the program by job control, so that its text can be looked at. False: it has died.
bool Halt(pid_t pid) {
  ::kill(pid, SIGSTOP);
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  siginfo_t info{};
  while (info.si_pid == 0 && steady_clock::now() < end) {
    int flags = WSTOPPED | WEXITED | WNOWAIT | WNOHANG;
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, flags) != 0) return false;
    ::sched_yield();
  }
  return info.si_pid == pid && info.si_code == CLD_STOPPED;
}

void GoOn(pid_t pid) {
  ::kill(pid, SIGCONT);
  siginfo_t info{};
  (void)::waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WCONTINUED | WNOHANG);
}

// Opened before the exec and read after it, they are empty, as those of a process that has ended.
TEST_F(EngineTest, MapsOfAProgramThatExecsAreThere) {
  Puppet puppet("execing");
  for (int i = 0; i < 60'000; ++i) {
    auto maps = sys::ReadMaps(puppet.pid());
    ASSERT_TRUE(maps.ok()) << maps.error().ToString() << " after " << i;
    ASSERT_FALSE(maps->empty());
  }
  puppet.CloseInput();
  EXPECT_EQ(puppet.Wait(), 0);
}

TEST_F(EngineTest, AProgramThatExecsWhileItIsDetachedFromLivesOn) {
  Puppet puppet("execing");
  const auto end = steady_clock::now() + std::chrono::seconds(20);
  uint64_t hits = 0;
  for (int round = 0; round < 200 && steady_clock::now() < end; ++round) {
    TargetId target = Attach(puppet);
    auto probes = Create(target, {fmt::format("p:t/x {}:probed", puppet.path()),
                                  fmt::format("r:t/y {}:probed", puppet.path())});
    ASSERT_EQ(probes.size(), 2u);
    // Now and then in the middle of what it does; the first time certainly after a hit.
    if (round % 2 == 0) (void)events_->Next(1, std::chrono::milliseconds(1 + round % 5));
    while (round == 0 && Counters(probes[0].id).hits == 0 && steady_clock::now() < end) {
      (void)events_->Next(1, std::chrono::milliseconds(10));  // a notice, or a hit
    }
    hits += Counters(probes[0].id).hits;
    EXPECT_EQ(Detach(target).warning, "");
    ASSERT_TRUE(Halt(puppet.pid())) << "died in round " << round;
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
    GoOn(puppet.pid());
    (void)Drain();
  }
  EXPECT_GT(hits, 0u);
  puppet.CloseInput();
  int status = puppet.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << std::hex << status;
}

// Nobody detached: the engine ends, and what it has put into programs with it.
TEST_F(EngineTest, AnEngineThatEndsLeavesNothingInAProgramThatExecs) {
  Puppet puppet("execing");
  const auto end = steady_clock::now() + std::chrono::seconds(20);
  for (int round = 0; round < 30 && steady_clock::now() < end; ++round) {
    auto engine = Engine::Create({});
    ASSERT_TRUE(engine.ok());
    auto target = (*engine)->Attach(puppet.pid(), {});
    ASSERT_TRUE(target.ok()) << target.error().ToString();
    auto created = (*engine)->CreateProbes(target->id,
                                           {fmt::format("p:t/x {}:probed", puppet.path()),
                                            fmt::format("r:t/y {}:probed", puppet.path())},
                                           {});
    ASSERT_TRUE(created.ok() && created->errors.empty());
    engine->reset();
    ASSERT_TRUE(Halt(puppet.pid())) << "died in round " << round;
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
    GoOn(puppet.pid());
  }
  puppet.CloseInput();
  int status = puppet.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << std::hex << status;
}

}  // namespace
}  // namespace probed::engine
