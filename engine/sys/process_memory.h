#pragma once
// Memory of another process. Reads work on running processes; writes need a ptrace-stopped thread
// when /proc/PID/mem may not be opened for writing (no CAP_DAC_OVERRIDE), so the writer takes its
// tid. Not thread-safe. process_vm_readv(2), proc(5), ptrace(2) PTRACE_POKETEXT.

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "base/address.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::sys {

class ProcessMemory {
 public:
  static Result<ProcessMemory> Open(pid_t pid);

  // Bytes read before the first unreadable one; faults pages in.
  size_t ReadSome(RemoteAddr address, std::span<std::byte> out) const;
  // The same, with `extra` read in the same system call if it can be read at all; it keeps its
  // bytes otherwise.
  size_t ReadSomeWith(RemoteAddr extra_address, std::span<std::byte> extra, RemoteAddr address,
                      std::span<std::byte> out) const;
  // All or an error (MEMORY_UNREADABLE with the address).
  Status Read(RemoteAddr address, std::span<std::byte> out) const;
  // Whether Write() needs no stopped thread.
  bool CanWriteRunning() const { return write_fd_.valid(); }
  // Ignores page protection (private copy of a file page). `stopped_tid` is for the POKETEXT way.
  Status Write(RemoteAddr address, std::span<const std::byte> bytes, pid_t stopped_tid) const;
  // Honours page protection, as a store of the program does; all or nothing.
  bool WriteAsProgram(RemoteAddr address, std::span<const std::byte> bytes) const;

 private:
  // What a system call on a task of the process returns, 0 for an error. Another task, once that
  // one has ended before the others.
  template <class Call>
  size_t OfTask(const Call& call) const;
  bool WriteWithinPage(RemoteAddr address, std::span<const std::byte> bytes) const;
  ProcessMemory(pid_t pid, UniqueFd read_fd, UniqueFd write_fd);
  pid_t pid_ = 0;
  mutable pid_t task_ = 0;
  UniqueFd read_fd_;
  UniqueFd write_fd_;  // invalid: POKETEXT
};

}  // namespace probed::sys
