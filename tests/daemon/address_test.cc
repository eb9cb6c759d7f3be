#include "daemon/net/address.h"

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

TEST(ListenAddress, Unix) {
  const auto address = ParseListenAddress("unix:///run/x.sock");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->kind, ListenAddress::Kind::kUnix);
  EXPECT_EQ(address->path, "/run/x.sock");
}

TEST(ListenAddress, Tcp) {
  const auto address = ParseListenAddress("tcp://[::1]:50051");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->kind, ListenAddress::Kind::kTcp);
  EXPECT_EQ(address->path, "[::1]:50051");
}

TEST(ListenAddress, NothingElse) {
  const std::string long_path = "unix:///" + std::string(107, 'x');
  for (const std::string& text :
       {std::string(), std::string("/run/x.sock"), std::string("unix://relative"),
        std::string("tcp://host"), std::string("tcp://:1"), std::string("tcp://host:"),
        std::string("http://host:1"), long_path})
    EXPECT_EQ(ParseListenAddress(text).error().reason, "INVALID_ADDRESS") << text;
}

}  // namespace
}  // namespace probed::daemon
