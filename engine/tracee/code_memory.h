#pragma once
// The code of a process in the stop of one of its threads. While all its threads are stopped, a
// page is read once, and what is written to it goes out together: a request may concern thousands
// of places, and the program waits. Otherwise, as other threads may write there too, every access
// is a system call. Tracer thread only, and no other way to the same bytes while one exists.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "base/result.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

class CodeMemory {
 public:
  explicit CodeMemory(Stopped& stopped);
  ~CodeMemory() { Flush(); }
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  Stopped& stopped() const { return stopped_; }

  // Cheap in the order of addresses. Errors as those of Stopped.
  Status Read(RemoteAddr address, std::span<uint8_t> out);
  Status Write(RemoteAddr address, std::span<const uint8_t> bytes);
  bool Holds(RemoteAddr address, std::span<const uint8_t> expected);
  // What was written is in the process.
  void Flush();

 private:
  static constexpr size_t kPageSize = 4096;
  bool Load(RemoteAddr address);
  Status WriteInPage(RemoteAddr address, std::span<const uint8_t> bytes);

  Stopped& stopped_;
  const bool alone_;
  RemoteAddr page_;  // of what `bytes_` holds
  bool loaded_ = false;
  bool writable_ = false;  // a write to this page was seen to succeed
  size_t dirty_begin_ = kPageSize, dirty_end_ = 0;
  std::array<uint8_t, kPageSize> bytes_{};
};

}  // namespace probed::tracee
