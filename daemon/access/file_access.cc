#include "daemon/access/file_access.h"

#include <sys/stat.h>

#include <filesystem>

#include <fmt/format.h>

#include "engine/sys/proc.h"

namespace probed::daemon {
namespace {

// `wanted` is one rwx digit. The class that applies is the first that matches (path_resolution(7)).
bool Allowed(const Caller& caller, const std::string& path, mode_t wanted) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return false;
  if (info.st_uid == caller.uid) return ((info.st_mode >> 6) & wanted) == wanted;
  if (info.st_gid == caller.gid) return ((info.st_mode >> 3) & wanted) == wanted;
  return (info.st_mode & wanted) == wanted;
}

constexpr mode_t kRead = 4;
constexpr mode_t kSearch = 1;

bool Readable(const Caller& caller, const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error || !Allowed(caller, real, kRead)) return false;
  for (auto parent = real.parent_path(); parent != parent.root_path();
       parent = parent.parent_path())
    if (!Allowed(caller, parent, kSearch)) return false;
  return true;
}

ino_t MountNamespace(pid_t pid) {
  struct stat info {};
  return stat(sys::ProcPath(pid, "ns/mnt").c_str(), &info) == 0 ? info.st_ino : 0;
}

// Elsewhere, mounts of the target's making could show any file under any name.
bool SharesOurFiles(pid_t pid) {
  std::error_code error;
  return MountNamespace(pid) == MountNamespace(::getpid()) &&
         std::filesystem::read_symlink(sys::ProcPath(pid, "root"), error) == "/";
}

}  // namespace

Status CheckReadable(const Caller& caller, const std::string& path,
                     std::optional<event::TargetId> target) {
  if (caller.admin) return {};
  const bool ours = !target || SharesOurFiles(target->pid);
  if (ours && path.starts_with('/') && Readable(caller, path)) return {};
  return Error{ErrorCode::kPermissionDenied,
               "FILE_NOT_READABLE",
               fmt::format("{}: no such file, or you may not read it", path),
               "give the absolute path of a file that you can read",
               {{"path", path}}};
}

}  // namespace probed::daemon
