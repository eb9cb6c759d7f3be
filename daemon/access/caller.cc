#include "daemon/access/caller.h"

#include <grp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

namespace probed::daemon {
namespace {

// Supplementary groups; SO_PEERGROUPS tells the length it wants by ERANGE.
std::vector<gid_t> PeerGroups(int fd) {
  std::vector<gid_t> groups(64);
  for (int attempt = 0; attempt < 2; ++attempt) {
    socklen_t bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int rc = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    groups.resize(bytes / sizeof(gid_t));
    if (rc == 0) return groups;
    if (errno != ERANGE) break;
  }
  return {};
}

bool HasGroup(int fd, gid_t primary, const std::string& name) {
  const group* entry = name.empty() ? nullptr : getgrnam(name.c_str());
  if (entry == nullptr) return false;
  const gid_t wanted = entry->gr_gid;
  const std::vector<gid_t> groups = PeerGroups(fd);
  return primary == wanted || std::find(groups.begin(), groups.end(), wanted) != groups.end();
}

}  // namespace

Result<Caller> CallerOfSocket(int fd, const std::string& admin_group) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0)
    return ErrnoError(errno, "getsockopt SO_PEERCRED");
  Caller caller;
  caller.uid = credentials.uid;
  caller.gid = credentials.gid;
  caller.admin = caller.uid == 0 || HasGroup(fd, caller.gid, admin_group);
  caller.name = fmt::format("uid={}", caller.uid);
  return caller;
}

}  // namespace probed::daemon
