#include "client/address.h"

#include <sys/un.h>

#include <string_view>

namespace probed::client {
namespace {

Error BadAddress(const std::string& text, const std::string& why) {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "BAD_ADDRESS",
          .message = "'" + text + "' " + why,
          .hint = "unix:///run/probed/probed.sock, tcp://host:port or private",
          .metadata = {}};
}

bool TakePrefix(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<Address> ParseUnix(const std::string& text, std::string_view path) {
  if (path.empty()) return BadAddress(text, "names no socket");
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return BadAddress(text, "is too long");
  return Address(UnixAddress{std::string(path)});
}

bool IsPort(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

Result<Address> ParseAddress(const std::string& text) {
  std::string_view rest = text;
  if (TakePrefix("unix://", rest) || TakePrefix("unix:", rest) || rest.starts_with('/')) {
    return ParseUnix(text, rest);
  }
  TakePrefix("tcp://", rest);
  size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !IsPort(rest.substr(colon + 1))) {
    return BadAddress(text, "is no address of a daemon");
  }
  return Address(TcpAddress{std::string(rest)});
}

}  // namespace probed::client
