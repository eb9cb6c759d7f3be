#pragma once
// Which processes have started, executed a program or changed their name or user: what
// whoever waits for a process has to look at again. By the kernel's process connector where that is
// allowed (CAP_NET_ADMIN outside containers; Documentation/driver-api/connector.rst), otherwise by
// time. One thread.

#include <sys/types.h>

#include <chrono>
#include <vector>

#include "base/unique_fd.h"

namespace probed::sys {

class ProcessEvents {
 public:
  ProcessEvents();  // listens from here on

  struct Changed {
    std::vector<pid_t> pids;
    bool all = false;  // what changed is not known
  };
  // Waits until something has changed; after `at_most`, and from time to time, that is unknown.
  Changed Next(std::chrono::milliseconds at_most);
  // Whether the kernel tells.
  bool told() const { return socket_.valid(); }

 private:
  bool Receive(Changed& changed);

  UniqueFd socket_;
};

}  // namespace probed::sys
