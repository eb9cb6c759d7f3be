#include "engine/privileges.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <unistd.h>

#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"

namespace probed::engine {
namespace {

// Documentation/admin-guide/LSM/Yama.rst
std::string DescribeYama(int scope, bool privileged) {
  switch (scope) {
    case -1:
      return "no Yama";
    case 0:
      return "Yama ptrace_scope 0: no restriction";
    case 1:
      return privileged ? "Yama ptrace_scope 1: no restriction with CAP_SYS_PTRACE"
                        : "Yama ptrace_scope 1: only programs started by 'probectl run'";
    case 2:
      return privileged ? "Yama ptrace_scope 2: no restriction with CAP_SYS_PTRACE"
                        : "Yama ptrace_scope 2: nothing can be attached to";
    default:
      return fmt::format("Yama ptrace_scope {}: nothing can be attached to", scope);
  }
}

}  // namespace

Privileges ReadPrivileges() {
  auto self = sys::ReadTaskStatus(::getpid());
  return {.capabilities = self.ok() ? self->permitted_caps : 0,
          .uid = ::geteuid(),
          .yama_scope = sys::YamaScope(),
          .ptrace_is_filtered = sys::IsPtraceFiltered()};
}

bool TracesAll(const Privileges& privileges) {
  return (privileges.capabilities >> CAP_SYS_PTRACE & 1) != 0;
}

// From scope 1 on, what lets us attach without the capability (being an ancestor, PR_SET_PTRACER)
// is ours alone.
bool HeirsMayAttach(const Privileges& privileges) {
  return privileges.yama_scope <= 0 || TracesAll(privileges);
}

std::vector<std::string> Describe(const Privileges& privileges) {
  auto has = [&](int capability) { return (privileges.capabilities >> capability & 1) != 0; };
  const bool privileged = has(CAP_SYS_PTRACE);
  std::vector<std::string> lines;
  if (privileges.ptrace_is_filtered) {
    lines.emplace_back("a seccomp filter forbids ptrace: nothing can be attached to");
  }
  lines.push_back(privileged
                      ? "CAP_SYS_PTRACE: processes of every user"
                      : fmt::format("no CAP_SYS_PTRACE: processes of uid {} only", privileges.uid));
  lines.push_back(DescribeYama(privileges.yama_scope, privileged));
  if (!has(CAP_SYS_ADMIN) && !has(CAP_CHECKPOINT_RESTORE)) {
    lines.emplace_back("no CAP_SYS_ADMIN: no files that were deleted after they were mapped");
  }
  return lines;
}

}  // namespace probed::engine
