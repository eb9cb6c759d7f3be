#include "engine/tracee/remote_call.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/sys/proc.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

TEST_F(TracerTest, RemoteSyscallReturnsTheValue) {
  Puppet puppet("counter", {"3", "10"});
  puppet.ReadLine();
  ASSERT_EQ(Attach(puppet.pid()), "");
  uint64_t pid = 0;
  std::string error;
  EXPECT_EQ(WithOneStopped(puppet.pid(),
                           [&](Stopped& stopped) -> Status {
                             PROBED_TRY(pid, RemoteSyscall(stopped, SYS_getpid, {}));
                             error = RemoteSyscall(stopped, SYS_close, {12345}).error().message;
                             return {};
                           }),
            "");
  EXPECT_EQ(pid, static_cast<uint64_t>(puppet.pid()));
  EXPECT_NE(error.find("Bad file descriptor"), std::string::npos) << error;
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("calls"), 30u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(TracerTest, CodeArenaMapsAndUnmaps) {
  Puppet puppet("counter", {"1", "10"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  ASSERT_EQ(Attach(puppet.pid()), "");
  std::string before = *sys::ReadMaps(puppet.pid());
  RemoteAddr first, second;
  EXPECT_EQ(WithOneStopped(puppet.pid(),
                           [&](Stopped& stopped) -> Status {
                             CodeArena& arena = stopped.process().arena();
                             PROBED_TRY(first, arena.Allocate(stopped, Window::Around(nop), 100));
                             PROBED_TRY(second, arena.Allocate(stopped, Window::Around(nop), 100));
                             std::byte code[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
                             return stopped.WriteMemory(first, code);
                           }),
            "");
  EXPECT_EQ(second - first, 112u);
  EXPECT_LT(std::max(first, nop) - std::min(first, nop), uint64_t{1} << 31);
  EXPECT_NE(*sys::ReadMaps(puppet.pid()), before);
  EXPECT_EQ(
      WithOneStopped(puppet.pid(),
                     [&](Stopped& stopped) { return stopped.process().arena().Release(stopped); }),
      "");
  EXPECT_EQ(*sys::ReadMaps(puppet.pid()), before);
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("calls"), 10u);
}

}  // namespace
}  // namespace probed::tracee
