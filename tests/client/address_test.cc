#include "client/address.h"

#include <gtest/gtest.h>

namespace probed::client {
namespace {

std::string PathOf(const std::string& text) {
  auto address = ParseAddress(text);
  if (!address.ok()) return "error " + address.error().reason;
  auto* local = std::get_if<UnixAddress>(&*address);
  return local != nullptr ? local->path : "tcp " + std::get<TcpAddress>(*address).host_port;
}

TEST(Address, UnixInEverySpelling) {
  EXPECT_EQ(PathOf("unix:///run/x"), "/run/x");
  EXPECT_EQ(PathOf("unix:relative"), "relative");
  EXPECT_EQ(PathOf("/run/x"), "/run/x");
}

TEST(Address, Tcp) {
  EXPECT_EQ(PathOf("tcp://host:7000"), "tcp host:7000");
  EXPECT_EQ(PathOf("[::1]:7000"), "tcp [::1]:7000");
}

TEST(Address, NonsenseIsRefused) {
  for (const char* text :
       {"", "unix:", "unix://", "host", "host:", ":7000", "tcp://host:port", "host:123456"}) {
    EXPECT_EQ(PathOf(text), "error BAD_ADDRESS") << text;
  }
  EXPECT_EQ(PathOf("unix:///" + std::string(200, 'x')), "error BAD_ADDRESS");
}

}  // namespace
}  // namespace probed::client
