#pragma once
// Processes by what they are rather than by their number.

#include <sys/types.h>

#include <optional>
#include <string>

namespace probed::daemon {

// What is set must hold.
struct ProcessSelection {
  std::string name{};        // comm, or the last part of the executable's path; glob(7)
  std::string executable{};  // absolute path
  std::optional<uid_t> uid{};
  std::string cgroup{};       // path of a control group: in it or below
  std::string container{};    // part of the name of one of its control groups
  std::string mapped_file{};  // absolute path of what it has mapped executable

  bool empty() const {
    return name.empty() && executable.empty() && !uid && cgroup.empty() && container.empty() &&
           mapped_file.empty();
  }
};

// Reads /proc/PID. Who maps a file is asked of everybody, so init, this process, its like (its
// guard) and its ancestors never match a mapped file. False for what is gone, a zombie or a thread
// of the kernel.
bool IsSelected(const ProcessSelection& selection, pid_t pid);

}  // namespace probed::daemon
