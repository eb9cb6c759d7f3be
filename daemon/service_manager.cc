#include "daemon/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <fmt/format.h>

#include "base/clock.h"

namespace probed::daemon {

void NotifyReady(const std::string& status) {
  sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
}

void NotifyStatus(const std::string& status) {
  sd_notify(0, ("STATUS=" + status).c_str());
}

void NotifyReloading() {
  sd_notify(0, fmt::format("RELOADING=1\nMONOTONIC_USEC={}", MonotonicNow() / 1000).c_str());
}

void NotifyStopping() {
  sd_notify(0, "STOPPING=1\nSTATUS=giving targets back");
}

void NotifyAlive() {
  sd_notify(0, "WATCHDOG=1");
}

std::optional<std::chrono::microseconds> WatchdogInterval() {
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds / 2);
}

Result<std::vector<UniqueFd>> PassedSockets() {
  std::vector<UniqueFd> sockets;
  const int count = sd_listen_fds(/*unset_environment=*/1);
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd) {
    sockets.emplace_back(fd);
    if (sd_is_socket_unix(fd, SOCK_STREAM, 1, nullptr, 0) <= 0)
      return Error{ErrorCode::kInvalidArgument,
                   "NOT_A_UNIX_LISTENER",
                   fmt::format("descriptor {} of LISTEN_FDS is not a listening unix stream", fd),
                   "ListenStream=/run/probed/probed.sock in the .socket unit",
                   {}};
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  return sockets;
}

}  // namespace probed::daemon
