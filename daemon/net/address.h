#pragma once
// Where to listen: unix:///path or tcp://host:port. Pure.

#include <string>
#include <string_view>

#include "base/result.h"

namespace probed::daemon {

inline constexpr std::string_view kDefaultSocket = "unix:///run/probed/probed.sock";

struct ListenAddress {
  enum class Kind { kUnix, kTcp };
  Kind kind = Kind::kUnix;
  std::string path;  // the socket's, or host:port
};

// INVALID_ADDRESS for anything else.
Result<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace probed::daemon
