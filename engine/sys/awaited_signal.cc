#include "engine/sys/awaited_signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "engine/sys/proc.h"
#include "engine/sys/process_memory.h"
#include "engine/sys/signal.h"

namespace probed::sys {
namespace {

constexpr size_t kMostLookedAt = 4096;

// "128 0x7ffe2f1c 0x0 ...", proc_pid_syscall(5): its first argument is the set.
bool WaitsForSignal(pid_t tid, const ProcessMemory& memory, uint64_t bit) {
  Result<std::string> text = ReadFile("/proc/" + std::to_string(tid) + "/syscall");
  long number = -1;
  uint64_t address = 0, set = 0;
  if (!text.ok() || std::sscanf(text->c_str(), "%ld %" SCNx64, &number, &address) != 2)
    return false;
  auto bytes = std::as_writable_bytes(std::span(&set, 1));
  return number == SYS_rt_sigtimedwait && memory.Read(RemoteAddr{address}, bytes).ok() &&
         (set & bit) != 0;
}

bool SomeThreadWaits(pid_t pid, uint64_t bit) {
  Result<std::vector<pid_t>> tasks = ListTasks(pid);
  Result<ProcessMemory> memory = ProcessMemory::Open(pid);
  if (!tasks.ok() || !memory.ok()) return false;
  tasks->resize(std::min(tasks->size(), kMostLookedAt));
  return std::any_of(tasks->begin(), tasks->end(),
                     [&](pid_t tid) { return WaitsForSignal(tid, *memory, bit); });
}

// "sigmask:" of Documentation/filesystems/proc.rst, 3.8.
bool IsSignalFdFor(pid_t pid, const std::string& number, uint64_t bit) {
  constexpr std::string_view kField = "sigmask:";
  Result<std::string> text = ReadFile(ProcPath(pid, "fdinfo/" + number));
  size_t found = text.ok() ? text->find(kField) : std::string::npos;
  uint64_t mask = 0;
  return found != std::string::npos &&
         std::sscanf(text->c_str() + found + kField.size(), "%" SCNx64, &mask) == 1 &&
         (mask & bit) != 0;
}

bool SomeFileTakes(pid_t pid, uint64_t bit) {
  std::error_code error;
  size_t count = 0;
  for (std::filesystem::directory_iterator entry(ProcPath(pid, "fd"), error), end;
       !error && entry != end && count < kMostLookedAt; entry.increment(error), ++count) {
    const auto target = std::filesystem::read_symlink(entry->path(), error);
    if (std::exchange(error, {})) continue;  // closed meanwhile
    if (target != "anon_inode:[signalfd]") continue;
    if (IsSignalFdFor(pid, entry->path().filename(), bit)) return true;
  }
  return false;
}

}  // namespace

bool AwaitsSignal(pid_t pid, int signal) {
  const uint64_t bit = SignalBit(signal);
  return SomeThreadWaits(pid, bit) || SomeFileTakes(pid, bit);
}

}  // namespace probed::sys
