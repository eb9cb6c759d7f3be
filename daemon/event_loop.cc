#include "daemon/event_loop.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

namespace probed::daemon {

Status EventLoop::Open() {
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return ErrnoError(errno, "epoll_create1");
  return {};
}

Status EventLoop::Watch(int fd, uint32_t events, Callback callback) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return ErrnoError(errno, "epoll_ctl EPOLL_CTL_ADD");
  callbacks_[fd] = std::move(callback);
  return {};
}

void EventLoop::Unwatch(int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  callbacks_.erase(fd);
}

Status EventLoop::Run() {
  std::array<epoll_event, 16> events;
  while (!stopped_) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    if (count < 0 && errno != EINTR) return ErrnoError(errno, "epoll_wait");
    for (int i = 0; i < count && !stopped_; ++i) {
      auto it = callbacks_.find(events[i].data.fd);
      if (it == callbacks_.end()) continue;
      const Callback callback = it->second;  // a copy: it may unwatch itself
      callback();
    }
  }
  return {};
}

}  // namespace probed::daemon
