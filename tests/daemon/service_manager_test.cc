#include "daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

// The other end of sd_notify: a datagram socket of our own.
class FakeManager : public testing::Test {
 protected:
  void SetUp() override {
    path_ = "/tmp/probed-notify-" + std::to_string(getpid());
    unlink(path_.c_str());
    fd_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ASSERT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("NOTIFY_SOCKET");
    unlink(path_.c_str());
  }

  // The next message, or nothing: sd_notify sends before it returns.
  std::string Received() {
    char buffer[512];
    const ssize_t size = recv(fd_.get(), buffer, sizeof buffer, 0);
    return size < 0 ? "" : std::string(buffer, static_cast<size_t>(size));
  }

  std::string path_;
  UniqueFd fd_;
};

TEST_F(FakeManager, IsToldReadyStoppingAndAlive) {
  NotifyReady("serving");
  EXPECT_EQ(Received(), "READY=1\nSTATUS=serving");
  NotifyAlive();
  EXPECT_EQ(Received(), "WATCHDOG=1");
  NotifyStopping();
  EXPECT_TRUE(Received().starts_with("STOPPING=1\n"));
  EXPECT_EQ(Received(), "");
}

TEST(ServiceManager, NobodyListensIsFine) {
  unsetenv("NOTIFY_SOCKET");
  NotifyReady("x");
}

TEST(ServiceManager, WatchdogIsFedTwiceAsOften) {
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(WatchdogInterval(), std::chrono::microseconds(1'500'000));
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(WatchdogInterval(), std::nullopt);
  unsetenv("WATCHDOG_USEC");
  unsetenv("WATCHDOG_PID");
  EXPECT_EQ(WatchdogInterval(), std::nullopt);
}

TEST(ServiceManager, NoSocketsPassed) {
  unsetenv("LISTEN_FDS");
  EXPECT_TRUE(PassedSockets()->empty());
}

}  // namespace
}  // namespace probed::daemon
