#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "engine/tracee/tracer.h"
#include "tests/tracee/breakpoint_observer.h"
#include "tests/tracee/puppet.h"

namespace probed::tracee {
namespace {

// Dies while it deals with a hit, which it has read from the kernel but not answered.
class DyingObserver : public BreakpointObserver {
 public:
  explicit DyingObserver(uint64_t last) : last_(last) {}
  Resumption OnTrap(Stopped& stopped) override {
    Resumption resumption = BreakpointObserver::OnTrap(stopped);
    if (hits() == last_) raise(SIGKILL);
    return resumption;
  }

 private:
  uint64_t last_;
};

[[noreturn]] void TraceUntilDeath(pid_t pid, RemoteAddr nop, uint64_t hits, int armed) {
  DyingObserver observer(hits);
  auto tracer = Tracer::Start(observer);
  if (!tracer.ok()) _exit(1);
  (*tracer)->Call([&] {
    auto process = (*tracer)->Attach({.pid = pid});
    if (!process.ok()) _exit(2);
    auto insert = [&](Stopped& stopped) { return observer.Insert(stopped, nop); };
    if (!(*tracer)->WithOneStopped(**process, std::chrono::seconds(5), insert).ok()) _exit(3);
  });
  if (write(armed, "a", 1) != 1) _exit(4);
  alarm(20);  // of a test that fails
  while (true)
    pause();
}

TEST(TracerDeathTest, ATrapThatIsBeingDealtWithIsDelivered) {
  constexpr int kCalls = 100, kDealtWith = 40;
  Puppet puppet("trapper", {std::to_string(kCalls)});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  int armed[2];
  ASSERT_EQ(pipe(armed), 0);
  pid_t tracer = fork();
  if (tracer == 0) TraceUntilDeath(puppet.pid(), nop, kDealtWith, armed[1]);
  close(armed[1]);
  char byte = 0;
  EXPECT_EQ(read(armed[0], &byte, 1), 1);
  close(armed[0]);
  puppet.Send();
  int status = 0;
  ASSERT_EQ(waitpid(tracer, &status, 0), tracer);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(puppet.ReadNumber("traps"), static_cast<uint64_t>(kCalls - kDealtWith + 1));
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

}  // namespace
}  // namespace probed::tracee
