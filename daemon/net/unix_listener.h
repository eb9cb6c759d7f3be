#pragma once
// A listening unix socket in the file system.

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::daemon {

class UnixListener {
 public:
  // Mode 0660 and `group` where that group exists, 0600 otherwise. A socket that nobody answers on
  // is replaced; ADDRESS_IN_USE when somebody does or when the file is not a socket.
  static Result<UnixListener> Open(const std::string& path, const std::string& group);
  // One that systemd opened for us; it stays in the file system.
  explicit UnixListener(UniqueFd fd) : fd_(std::move(fd)) {}

  UnixListener(UnixListener&&) noexcept = default;
  UnixListener& operator=(UnixListener&&) noexcept = default;
  ~UnixListener();  // removes the socket file if it is ours still

  int fd() const { return fd_.get(); }
  // Not valid when there was nothing to accept.
  UniqueFd Accept() const;

 private:
  UnixListener(UniqueFd fd, std::string path, uint64_t inode)
      : fd_(std::move(fd)), path_(std::move(path)), inode_(inode) {}

  UniqueFd fd_;
  std::string path_;  // empty: nothing to remove
  uint64_t inode_ = 0;
};

}  // namespace probed::daemon
