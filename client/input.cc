#include "client/input.h"

#include <unistd.h>

#include <algorithm>
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

std::vector<std::string_view> RawLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

}  // namespace probed::client
