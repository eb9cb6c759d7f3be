#include <sys/syscall.h>

#include "engine/tracee/remote_call.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

TEST_F(TracerTest, NoCallIsMadeInAProcessUnderSeccomp) {
  Puppet puppet("seccomp");
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  ASSERT_EQ(Attach(puppet.pid()), "");
  tracer_->Call([&] { EXPECT_TRUE(tracer_->Find(puppet.pid())->under_seccomp()); });
  auto call = [](Stopped& stopped) -> Status {
    PROBED_TRY([[maybe_unused]] uint64_t pid, RemoteSyscall(stopped, SYS_getpid, {}));
    return {};
  };
  EXPECT_EQ(WithOneStopped(puppet.pid(), call), "SECCOMP_ACTIVE");
  auto allocate = [&](Stopped& stopped) -> Status {
    PROBED_TRY([[maybe_unused]] RemoteAddr block,
               stopped.process().arena().Allocate(stopped, Window::Around(nop), 16));
    return {};
  };
  EXPECT_EQ(WithOneStopped(puppet.pid(), allocate), "SECCOMP_ACTIVE");
  Insert(puppet.pid(), nop);
  puppet.Send();
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.hits(), 1u);
}

// The exec stop must be a place where calls can be made: probes are armed there.
TEST_F(TracerTest, CallsCanBeMadeAtExec) {
  uint64_t pid = 0;
  observer_.exec_hook = [&](Stopped& stopped) {
    pid = RemoteSyscall(stopped, SYS_getpid, {}).value_or(0);
  };
  LaunchRequest request;
  request.argv = {"true"};
  pid_t launched = 0;
  tracer_->Call([&] {
    Result<Process*> process = tracer_->Launch(request);
    ASSERT_TRUE(process.ok());
    launched = (*process)->pid();
    tracer_->Resume(**process);
  });
  EXPECT_EQ(pid, static_cast<uint64_t>(launched));
  std::string ended = "exit " + std::to_string(launched) + " status 0";
  EXPECT_TRUE(Eventually([&] { return observer_.Saw(ended); }));
}

}  // namespace
}  // namespace probed::tracee
