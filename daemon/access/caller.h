#pragma once
// Who is on the other end of a connection.

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace probed::daemon {

struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  // May do everything: root, a member of the admin group, or a verified remote client.
  bool admin = false;
  std::string name;  // for the audit log: "uid=1000", "tls"
  // Has CAP_SYS_PTRACE where we have it: all processes, but no more than that.
  bool traces_all = false;
  auto operator<=>(const Caller&) const = default;
};

// From SO_PEERCRED and SO_PEERGROUPS of a connected unix socket: the credentials of the moment the
// peer connected, kept by the kernel.
Result<Caller> CallerOfSocket(int fd, const std::string& admin_group);

}  // namespace probed::daemon
