#include "daemon/net/unix_listener.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

class UnixListenerTest : public testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }

  bool Connects() const {
    const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    return connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  struct stat Info() const {
    struct stat info {};
    lstat(path_.c_str(), &info);
    return info;
  }

  const std::string path_ = "/tmp/probed-listener-" + std::to_string(getpid());
};

TEST_F(UnixListenerTest, ModeDependsOnTheGroup) {
  {
    const auto listener = UnixListener::Open(path_, "no-such-group");
    ASSERT_TRUE(listener.ok());
    EXPECT_EQ(Info().st_mode & 07777, 0600u);
  }
  const group* own = getgrgid(getgid());
  ASSERT_NE(own, nullptr);
  const auto listener = UnixListener::Open(path_, own->gr_name);
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(Info().st_mode & 07777, 0660u);
  EXPECT_EQ(Info().st_gid, getgid());
}

TEST_F(UnixListenerTest, RemovesItsSocket) {
  {
    const auto listener = UnixListener::Open(path_, "");
    ASSERT_TRUE(listener.ok());
    EXPECT_TRUE(Connects());
    EXPECT_TRUE(listener->Accept().valid());
    EXPECT_FALSE(listener->Accept().valid());
  }
  EXPECT_EQ(Info().st_mode, 0u);
}

TEST_F(UnixListenerTest, ReplacesOnlyWhatNobodyAnswers) {
  const auto first = UnixListener::Open(path_, "");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(UnixListener::Open(path_, "").error().reason, "ADDRESS_IN_USE");
  EXPECT_TRUE(Connects());
  // A stale file: bound, then closed without unlink.
  unlink(path_.c_str());
  {
    const UniqueFd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_FALSE(Connects());
  const auto second = UnixListener::Open(path_, "");
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(Connects());
}

TEST_F(UnixListenerTest, LeavesOtherFilesAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(UnixListener::Open(path_, "").error().reason, "ADDRESS_IN_USE");
  EXPECT_EQ(Info().st_size, 8);
}

}  // namespace
}  // namespace probed::daemon
