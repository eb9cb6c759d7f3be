#include "daemon/access/process_credentials.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cstdio>

#include <fmt/format.h>

#include "base/file.h"
#include "engine/sys/proc.h"

namespace probed::daemon {
namespace {

constexpr size_t kMaxProcFile = 1u << 16;

Error NoSuchProcess(pid_t pid) {
  return Error{ErrorCode::kNotFound,
               "PROCESS_NOT_FOUND",
               fmt::format("no process {}", pid),
               "check the pid, and that it is of the daemon's pid namespace",
               {{"pid", std::to_string(pid)}}};
}

bool ReadGids(const std::string& status, std::array<gid_t, 3>& gids) {
  const size_t at = status.find("\nGid:");
  return at != std::string::npos &&
         std::sscanf(status.c_str() + at, " Gid: %u %u %u", &gids[0], &gids[1], &gids[2]) == 3;
}

// Files in /proc/PID belong to the effective uid while the process is dumpable and to root
// otherwise (task_dump_owner(); the directory itself is exempt, so it cannot be asked).
bool IsDumpable(const std::string& status_path, uid_t effective_uid) {
  struct stat owner {};
  return stat(status_path.c_str(), &owner) == 0 && owner.st_uid == effective_uid;
}

// The name spaces around that of the process, out to our own (ioctl_ns(2)). Nothing: it lives in
// ours, or in none that is below it.
std::optional<uid_t> OwnerOfNamespace(pid_t pid) {
  constexpr int kDeepest = 32;  // user_namespaces(7)
  struct stat own {};
  auto at = OpenFile(sys::ProcPath(pid, "ns/user"), O_RDONLY);
  if (!at.ok() || stat("/proc/self/ns/user", &own) != 0) return std::nullopt;
  UniqueFd space = std::move(*at);
  std::optional<uid_t> owner;
  for (int i = 0; i < kDeepest; ++i) {
    struct stat status {};
    if (fstat(space.get(), &status) != 0) return std::nullopt;
    if (status.st_ino == own.st_ino) return owner;
    uid_t uid = 0;
    if (ioctl(space.get(), NS_GET_OWNER_UID, &uid) != 0) return std::nullopt;
    owner = uid;
    space = UniqueFd(ioctl(space.get(), NS_GET_PARENT));
  }
  return std::nullopt;
}

}  // namespace

Result<ProcessCredentials> ReadCredentials(pid_t pid) {
  const pid_t task = sys::LivingTask(pid);
  const std::string status_path = fmt::format("/proc/{}/status", task);
  const auto status = sys::ReadTaskStatus(task);
  const auto stat_fields = sys::ReadTaskStat(pid);
  const auto text = ReadFile(status_path, kMaxProcFile);
  ProcessCredentials credentials;
  if (!status.ok() || !stat_fields.ok() || !text.ok() || !ReadGids(*text, credentials.gids))
    return NoSuchProcess(pid);
  credentials.ended = text->find("\nVmSize:") == std::string::npos;
  credentials.uids = {status->real_uid, status->effective_uid, status->saved_uid};
  credentials.permitted_capabilities = status->permitted_caps;
  credentials.dumpable = IsDumpable(status_path, status->effective_uid);
  credentials.namespace_owner = OwnerOfNamespace(pid);
  credentials.start_ticks = stat_fields->start_ticks;
  return credentials;
}

}  // namespace probed::daemon
