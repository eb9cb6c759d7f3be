#include "client/input.h"

#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace probed::client {
namespace {

constexpr size_t kLimit = 64u << 20;

// Opening /dev/stdin would fail where standard input is a socket.
Result<std::string> ReadStandardInput() {
  std::string contents;
  char buffer[16384];
  while (contents.size() <= kLimit) {
    ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError(errno, "read standard input");
    if (count == 0) return contents;
    contents.append(buffer, static_cast<size_t>(count));
  }
  return Error{.code = ErrorCode::kResourceExhausted,
               .reason = "INPUT_TOO_LARGE",
               .message = "standard input is larger than 64 MiB",
               .hint = "",
               .metadata = {}};
}

}  // namespace

Result<std::string> ReadInput(const std::string& path) {
  return path == "-" ? ReadStandardInput() : ReadFile(path, kLimit);
}

}  // namespace probed::client
