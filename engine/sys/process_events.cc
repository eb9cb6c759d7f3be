#include "engine/sys/process_events.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace probed::sys {
namespace {

using std::chrono::milliseconds;

// Where nothing tells, a process that starts is seen this late at most.
constexpr milliseconds kPoll{50};

struct alignas(NLMSG_ALIGNTO) Listen {
  nlmsghdr header{};
  std::array<std::byte, sizeof(cn_msg) + sizeof(proc_cn_mcast_op)> body{};
};

bool AskToListen(int fd) {
  cn_msg message{};
  message.id = {CN_IDX_PROC, CN_VAL_PROC};
  message.len = sizeof(proc_cn_mcast_op);
  const proc_cn_mcast_op operation = PROC_CN_MCAST_LISTEN;
  Listen listen;
  listen.header.nlmsg_len = NLMSG_LENGTH(sizeof listen.body);
  listen.header.nlmsg_type = NLMSG_DONE;
  listen.header.nlmsg_pid = static_cast<uint32_t>(::getpid());
  std::memcpy(listen.body.data(), &message, sizeof message);
  std::memcpy(listen.body.data() + sizeof message, &operation, sizeof operation);
  return ::send(fd, &listen, listen.header.nlmsg_len, 0) == listen.header.nlmsg_len;
}

UniqueFd OpenSocket() {
  UniqueFd fd(::socket(PF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  if (!fd.valid()) return {};
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return AskToListen(fd.get()) ? std::move(fd) : UniqueFd();
}

// 0: of no interest. Threads are none of it, nor is what an exec of theirs leaves of them.
pid_t ChangedProcess(const proc_event& event) {
  switch (event.what) {
    case proc_event::PROC_EVENT_FORK: {
      const auto& child = event.event_data.fork;
      return child.child_pid == child.child_tgid ? child.child_pid : 0;
    }
    case proc_event::PROC_EVENT_EXEC:
      return event.event_data.exec.process_tgid;
    case proc_event::PROC_EVENT_COMM:
      return event.event_data.comm.process_tgid;
    case proc_event::PROC_EVENT_UID:
      return event.event_data.id.process_tgid;
    default:
      return 0;
  }
}

// One datagram carries one message of the connector.
pid_t ChangedProcess(const std::byte* datagram, size_t size) {
  constexpr size_t kEventAt = NLMSG_HDRLEN + sizeof(cn_msg);
  proc_event event{};
  if (size < kEventAt + sizeof event) return 0;
  std::memcpy(&event, datagram + kEventAt, sizeof event);
  return ChangedProcess(event);
}

}  // namespace

ProcessEvents::ProcessEvents() : socket_(OpenSocket()) {}

// False: there is nothing more for now.
bool ProcessEvents::Receive(Changed& changed) {
  alignas(NLMSG_ALIGNTO) std::array<std::byte, 4096> datagram;
  sockaddr_nl sender{};
  socklen_t length = sizeof sender;
  const ssize_t got = ::recvfrom(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&sender), &length);
  if (got < 0) {
    if (errno == ENOBUFS) changed.all = true;  // some were dropped
    return errno == ENOBUFS || errno == EINTR;
  }
  if (sender.nl_pid != 0) return true;  // not from the kernel
  const pid_t pid = ChangedProcess(datagram.data(), static_cast<size_t>(got));
  if (pid != 0) changed.pids.push_back(pid);
  return true;
}

ProcessEvents::Changed ProcessEvents::Next(milliseconds at_most) {
  constexpr size_t kMost = 1024;  // at once: a storm does not keep us
  Changed changed;
  pollfd wait{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  const milliseconds timeout = told() ? at_most : std::min(at_most, kPoll);
  if (::poll(&wait, 1, static_cast<int>(timeout.count())) <= 0) {
    changed.all = true;
    return changed;
  }
  for (size_t i = 0; i < kMost && Receive(changed); ++i) {
  }
  return changed;
}

}  // namespace probed::sys
