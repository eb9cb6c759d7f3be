#include "daemon/process_selection.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/sys/proc.h"

namespace probed::daemon {
namespace {

std::string WithoutDeleted(std::string path) {
  constexpr std::string_view kDeleted = " (deleted)";  // proc(5)
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

bool IsNamed(const std::string& pattern, pid_t pid, const std::string& executable) {
  const std::string file = executable.substr(executable.rfind('/') + 1);
  return ::fnmatch(pattern.c_str(), sys::ReadComm(pid).c_str(), 0) == 0 ||
         ::fnmatch(pattern.c_str(), file.c_str(), 0) == 0;
}

bool ExecutesFile(const std::string& path, pid_t pid) {
  struct stat wanted, running;
  return ::stat(path.c_str(), &wanted) == 0 &&
         ::stat(sys::ProcPath(pid, "exe").c_str(), &running) == 0 &&
         wanted.st_dev == running.st_dev && wanted.st_ino == running.st_ino;
}

// By its name, which a replaced file keeps, or as the same file, whatever it is called.
bool Executes(const std::string& path, pid_t pid, const std::string& executable) {
  return executable == path || ExecutesFile(path, pid);
}

// The device and inode columns of /proc/PID/maps. On overlayfs and btrfs, stat has another device;
// there the path has to do.
std::string ColumnsOf(const std::string& path) {
  struct stat file;
  if (::stat(path.c_str(), &file) != 0) return "";
  return fmt::format(" {:02x}:{:02x} {} ", major(file.st_dev), minor(file.st_dev), file.st_ino);
}

bool IsMappingOf(std::string_view line, const std::string& path, const std::string& columns) {
  const size_t permissions = line.find(' ');
  if (permissions == line.npos || line.substr(permissions, 4).find('x') == line.npos) return false;
  if (!columns.empty() && line.find(columns) != line.npos) return true;
  return line.ends_with(" " + path) || line.ends_with(" " + path + " (deleted)");
}

bool Maps(const std::string& path, pid_t pid) {
  const auto maps = sys::ReadMaps(pid);
  if (!maps.ok()) return false;
  const std::string columns = ColumnsOf(path);
  std::string_view rest = *maps;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (IsMappingOf(rest.substr(0, end), path, columns)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool IsAncestor(pid_t pid) {
  pid_t ancestor = ::getppid();
  constexpr int kMostGenerations = 64;  // pids are reused while we look
  for (int i = 0; i < kMostGenerations && ancestor > 1; ++i) {
    if (ancestor == pid) return true;
    const auto status = sys::ReadTaskStatus(ancestor);
    if (!status.ok()) return false;
    ancestor = status->parent_pid;
  }
  return false;
}

// Whom a stop would harm most: everybody waits for them, and we for some. Other daemons and guards
// of ours are among them.
bool IsOneOfUs(pid_t pid) {
  return pid == 1 || pid == ::getpid() || ExecutesFile("/proc/self/exe", pid);
}

bool IsBelow(std::string_view path, std::string_view group) {
  while (group.ends_with('/'))
    group.remove_suffix(1);
  return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '/');
}

template <class Predicate>
bool InGroup(pid_t pid, Predicate predicate) {
  const std::vector<std::string> groups = sys::ReadControlGroups(pid);
  return std::any_of(groups.begin(), groups.end(), predicate);
}

bool HasUser(uid_t uid, pid_t pid) {
  const auto status = sys::ReadTaskStatus(pid);
  return status.ok() && status->effective_uid == uid;
}

}  // namespace

bool IsSelected(const ProcessSelection& selection, pid_t pid) {
  const std::string executable = WithoutDeleted(sys::ReadExecutable(pid));
  if (executable.empty()) return false;
  if (!selection.name.empty() && !IsNamed(selection.name, pid, executable)) return false;
  if (!selection.executable.empty() && !Executes(selection.executable, pid, executable))
    return false;
  if (selection.uid && !HasUser(*selection.uid, pid)) return false;
  if (!selection.cgroup.empty() &&
      !InGroup(pid, [&](const auto& path) { return IsBelow(path, selection.cgroup); }))
    return false;
  if (IsOneOfUs(pid)) return false;
  if (!selection.mapped_file.empty() && (!Maps(selection.mapped_file, pid) || IsAncestor(pid)))
    return false;
  return selection.container.empty() || InGroup(pid, [&](const auto& path) {
           return path.find(selection.container) != std::string::npos;
         });
}

}  // namespace probed::daemon
