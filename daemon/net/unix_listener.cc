#include "daemon/net/unix_listener.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace probed::daemon {
namespace {

constexpr int kBacklog = 64;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Error InUse(const std::string& path, std::string_view why) {
  return Error{ErrorCode::kUnavailable,
               "ADDRESS_IN_USE",
               fmt::format("{}: {}", path, why),
               "stop the other one, or listen elsewhere with --listen",
               {{"path", path}}};
}

// ECONNREFUSED is the kernel's word for a socket file whose listener is gone. Anything else, a full
// backlog included, means that somebody is there.
Status RemoveStale(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) return InUse(path, "exists and is not a socket");
  const UniqueFd probe = NewSocket();
  const sockaddr_un address = AddressOf(path);
  const int rc = connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (rc == 0 || errno != ECONNREFUSED) return InUse(path, "another daemon answers there");
  if (unlink(path.c_str()) != 0) return ErrnoError(errno, "unlink " + path);
  return {};
}

Status Bind(int fd, const std::string& path) {
  const sockaddr_un address = AddressOf(path);
  // Nobody may connect before the group is set.
  const mode_t old = umask(0177);
  const int rc = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error_number = errno;
  umask(old);
  if (rc != 0) return ErrnoError(error_number, "bind " + path);
  return {};
}

Status ShareWith(const std::string& path, const std::string& name) {
  const group* entry = name.empty() ? nullptr : getgrnam(name.c_str());
  if (entry == nullptr) return {};
  if (chown(path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0)
    return errno == EPERM ? Status() : ErrnoError(errno, "chown " + path);
  if (chmod(path.c_str(), 0660) != 0) return ErrnoError(errno, "chmod " + path);
  return {};
}

uint64_t InodeOf(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

Result<UnixListener> UnixListener::Open(const std::string& path, const std::string& group) {
  PROBED_RETURN_IF_ERROR(RemoveStale(path));
  UniqueFd fd = NewSocket();
  if (!fd.valid()) return ErrnoError(errno, "socket AF_UNIX");
  PROBED_RETURN_IF_ERROR(Bind(fd.get(), path));
  UnixListener listener(std::move(fd), path, InodeOf(path));
  PROBED_RETURN_IF_ERROR(ShareWith(path, group));
  if (listen(listener.fd(), kBacklog) != 0) return ErrnoError(errno, "listen " + path);
  return listener;
}

UnixListener::~UnixListener() {
  if (fd_.valid() && !path_.empty() && InodeOf(path_) == inode_) unlink(path_.c_str());
}

UniqueFd UnixListener::Accept() const {
  return UniqueFd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

}  // namespace probed::daemon
