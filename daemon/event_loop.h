#pragma once
// A small epoll loop. One thread.

#include <cstdint>
#include <functional>
#include <map>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::daemon {

class EventLoop {
 public:
  using Callback = std::function<void()>;

  Status Open();
  // `events` of epoll_ctl(2). The descriptor stays the caller's; errors and hang-ups call back too.
  Status Watch(int fd, uint32_t events, Callback callback);
  void Unwatch(int fd);  // from its own callback as well
  Status Run();          // until Stop()
  void Stop() { stopped_ = true; }

 private:
  UniqueFd epoll_;
  std::map<int, Callback> callbacks_;
  bool stopped_ = false;
};

}  // namespace probed::daemon
