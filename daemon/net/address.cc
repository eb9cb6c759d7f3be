#include "daemon/net/address.h"

#include <sys/un.h>

#include <fmt/format.h>

namespace probed::daemon {

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  constexpr std::string_view kUnix = "unix://";
  constexpr std::string_view kTcp = "tcp://";
  if (text.starts_with(kUnix)) {
    const std::string path(text.substr(kUnix.size()));
    if (path.starts_with('/') && path.size() < sizeof(sockaddr_un::sun_path))
      return ListenAddress{ListenAddress::Kind::kUnix, path};
  }
  if (text.starts_with(kTcp)) {
    const std::string path(text.substr(kTcp.size()));
    const size_t colon = path.rfind(':');
    if (colon != std::string::npos && colon > 0 && colon + 1 < path.size())
      return ListenAddress{ListenAddress::Kind::kTcp, path};
  }
  return Error{ErrorCode::kInvalidArgument,
               "INVALID_ADDRESS",
               fmt::format("\"{}\" is not an address to listen on", text),
               "unix:///absolute/path (at most 107 bytes) or tcp://host:port",
               {{"address", std::string(text)}}};
}

}  // namespace probed::daemon
