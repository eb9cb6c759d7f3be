#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace probed {

Result<UniqueFd> OpenFile(const std::string& path, int flags) {
  int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return ErrnoError(errno, "open " + path);
  return UniqueFd(fd);
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  PROBED_TRY(UniqueFd fd, OpenFile(path, O_RDONLY));
  std::string contents;
  char buffer[16384];
  while (true) {
    ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoError(errno, "read " + path);
    if (count == 0) return contents;
    contents.append(buffer, static_cast<size_t>(count));
    if (contents.size() > limit) {
      return Error{.code = ErrorCode::kResourceExhausted,
                   .reason = "FILE_TOO_LARGE",
                   .message = path + " is larger than " + std::to_string(limit) + " bytes",
                   .hint = "",
                   .metadata = {}};
    }
  }
}

}  // namespace probed
