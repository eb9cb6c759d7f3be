#pragma once
// A `probed` of our own for one use: it talks over one end of a socket pair and gives everything
// back when the other end is closed, however we end.

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::client {

class PrivateDaemon {
 public:
  // Must be called before this process has other threads, because it forks.
  // Errors: DAEMON_NOT_FOUND, or errno of the system call that failed.
  static Result<PrivateDaemon> Start();
  PrivateDaemon(PrivateDaemon&&) noexcept;
  PrivateDaemon& operator=(PrivateDaemon&&) = delete;
  // Waits, for a bounded time, until the daemon has given everything back and is gone.
  ~PrivateDaemon();

  pid_t pid() const { return pid_; }
  // A descriptor of our end of the pair, for the caller to own.
  Result<UniqueFd> Connect() const;
  // What the daemon said so far; for the message when it fails.
  std::string Log() const;

 private:
  PrivateDaemon(pid_t pid, UniqueFd socket, UniqueFd log)
      : pid_(pid), socket_(std::move(socket)), log_(std::move(log)) {}

  pid_t pid_;
  UniqueFd socket_;
  UniqueFd log_;
};

// `probed` beside this executable, else on PATH. DAEMON_NOT_FOUND.
Result<std::string> FindDaemon();

}  // namespace probed::client
