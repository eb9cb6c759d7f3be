#pragma once
// Where a daemon listens, as users write it.

#include <string>
#include <variant>

#include "base/result.h"

namespace probed::client {

inline constexpr char kDefaultSocket[] = "/run/probed/probed.sock";

struct UnixAddress {
  std::string path;
};
struct TcpAddress {
  std::string host_port;
};
using Address = std::variant<UnixAddress, TcpAddress>;

// "unix:///path", "unix:path", "/path", "tcp://host:port" or "host:port". BAD_ADDRESS.
Result<Address> ParseAddress(const std::string& text);

}  // namespace probed::client
