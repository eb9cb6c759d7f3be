#include "daemon/process_selection.h"

#include <fnmatch.h>
#include <sys/stat.h>

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

// By its name, which a replaced file keeps, or as the same file, whatever it is called.
bool Executes(const std::string& path, pid_t pid, const std::string& executable) {
  if (executable == path) return true;
  struct stat wanted, running;
  return ::stat(path.c_str(), &wanted) == 0 &&
         ::stat(("/proc/" + std::to_string(pid) + "/exe").c_str(), &running) == 0 &&
         wanted.st_dev == running.st_dev && wanted.st_ino == running.st_ino;
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
  return selection.container.empty() || InGroup(pid, [&](const auto& path) {
           return path.find(selection.container) != std::string::npos;
         });
}

}  // namespace probed::daemon
