#pragma once
// The service manager's side: sd_notify, the watchdog's interval and sockets it passes. Every call
// is harmless when nobody manages us.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::daemon {

void NotifyReady(const std::string& status);
void NotifyStatus(const std::string& status);
void NotifyReloading();
void NotifyStopping();
void NotifyAlive();

// How often NotifyAlive must be called: half of WatchdogSec.
std::optional<std::chrono::microseconds> WatchdogInterval();

// Sockets of LISTEN_FDS; NOT_A_UNIX_LISTENER when one is something else.
Result<std::vector<UniqueFd>> PassedSockets();

}  // namespace probed::daemon
