#include "engine/tracee/process.h"

#include <algorithm>
#include <utility>

#include "elf/module_map.h"
#include "engine/sys/proc.h"
#include "engine/tracee/thread.h"

namespace probed::tracee {
Process::Process(pid_t pid, uint64_t start_ticks, sys::ProcessMemory memory, StopSource& stops)
    : pid_(pid),
      start_ticks_(start_ticks),
      memory_(std::move(memory)),
      stops_(stops),
      arena_(*this) {}

Process::~Process() = default;

Result<std::unique_ptr<Process>> Process::Open(pid_t pid, StopSource& stops) {
  PROBED_TRY(sys::TaskStat stat, sys::ReadTaskStat(pid));
  PROBED_TRY(sys::ProcessMemory memory, sys::ProcessMemory::Open(pid));
  return std::unique_ptr<Process>(new Process(pid, stat.start_ticks, std::move(memory), stops));
}

std::string Process::comm(pid_t tid) const {
  auto [entry, is_new] = comms_.try_emplace(tid);
  if (is_new) entry->second = sys::ReadComm(tid);
  return entry->second;
}

Thread& Process::AddThread(std::unique_ptr<Thread> thread) {
  Thread& added = *thread;
  threads_[added.tid()] = std::move(thread);
  return added;
}

std::unique_ptr<Thread> Process::RemoveThread(pid_t tid) {
  comms_.erase(tid);
  auto found = threads_.find(tid);
  if (found == threads_.end()) return nullptr;
  std::unique_ptr<Thread> thread = std::move(found->second);
  threads_.erase(found);
  return thread;
}

void Process::Wake(pid_t tid) {
  auto found = threads_.find(tid);
  if (found != threads_.end() && !found->second->stopped()) found->second->Interrupt();
}

void Process::CountStop(uint64_t nanoseconds) {
  max_stop_ns_ = std::max(max_stop_ns_, nanoseconds);
  total_stop_ns_ += nanoseconds;
}

Status Process::StartOver() {
  awaiting_exec_ = false;
  if (std::exchange(hold_at_exec_, false)) Hold();
  arena_.Forget();
  comms_.clear();
  syscall_place_ = {};
  under_seccomp_ = false;
  CheckSeccomp(pid_);
  // An open /proc/PID/mem goes on showing the old image (proc(5)).
  PROBED_TRY(memory_, sys::ProcessMemory::Open(pid_));
  return {};
}

void Process::InheritFrom(const Process& parent) {
  follow_children_ = parent.follow_children_;
  under_seccomp_ = parent.under_seccomp_;
  arena_.CopyBlocks(parent.arena_);
}

bool Process::CheckSeccomp(pid_t tid) {
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
  if (status.ok() && status->seccomp != 0) under_seccomp_ = true;
  return under_seccomp_;
}

Result<SyscallPlace> Process::FindSyscallPlace() {
  if (syscall_place_.StandsIn(memory_)) return syscall_place_;
  PROBED_TRY(std::string text, sys::ReadMaps(pid_));
  PROBED_TRY(std::vector<elf::Mapping> mappings, elf::ParseMaps(text));
  // Libraries are mapped above the program: a C library's loader or itself is soon found.
  std::reverse(mappings.begin(), mappings.end());
  PROBED_TRY(syscall_place_, tracee::FindSyscallPlace(memory_, mappings));
  return syscall_place_;
}

}  // namespace probed::tracee
