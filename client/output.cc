#include "client/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/file.h"

namespace probed::client {
namespace {

constexpr size_t kWriteSize = 256 << 10;

// Another program may have made the shared standard output non-blocking.
void WaitWritable(int fd) {
  pollfd poll_fd{fd, POLLOUT, 0};
  ::poll(&poll_fd, 1, -1);
}

// 0, or errno of the write that failed.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      WaitWritable(fd);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

Result<Output> Output::Open(const std::string& path) {
  if (path.empty() || path == "-") return Output(UniqueFd(), STDOUT_FILENO);
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoError(errno, "open " + path);
  return Output(UniqueFd(fd), fd);
}

Output::Output(UniqueFd owned, int fd)
    : owned_(std::move(owned)), fd_(fd), is_terminal_(::isatty(fd) == 1) {
  buffer_.reserve(kWriteSize + kWriteSize / 4);
}

void Output::Commit() {
  if (buffer_.size() >= kWriteSize) Flush();
}

void Output::Flush() {
  if (!closed_ && !buffer_.empty()) {
    int error_number = WriteAll(fd_, buffer_);
    closed_ = error_number != 0;
    if (error_number != EPIPE) error_number_ = error_number;
  }
  buffer_.clear();
}

}  // namespace probed::client
