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

std::vector<pid_t> ThreadsThatAwait(pid_t pid, int signal) {
  const uint64_t bit = SignalBit(signal);
  Result<std::vector<pid_t>> tasks = ListTasks(pid);
  Result<ProcessMemory> memory = ProcessMemory::Open(pid);
  if (!tasks.ok() || !memory.ok()) return {};
  tasks->resize(std::min(tasks->size(), kMostLookedAt));
  std::erase_if(*tasks, [&](pid_t tid) { return !WaitsForSignal(tid, *memory, bit); });
  return *std::move(tasks);
}

bool AwaitsSignal(pid_t pid, int signal) {
  return !ThreadsThatAwait(pid, signal).empty() || SomeFileTakes(pid, SignalBit(signal));
}

}  // namespace probed::sys
