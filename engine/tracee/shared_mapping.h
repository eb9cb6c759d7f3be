#pragma once
// One memfd that a target and this process have mapped, made by the target itself. Its size is
// sealed, so the target cannot make our reads fault. memfd_create(2), fcntl(2) F_ADD_SEALS.
// Tracer thread only, but for bytes().

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/address.h"
#include "base/result.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

class SharedMapping {
 public:
  // What the target may do with it, for good: F_SEAL_FUTURE_WRITE allows our map alone to write.
  enum class Access : uint8_t { kTargetReads, kTargetWrites };

  struct Request {
    std::string_view name;  // shown in /proc/PID/maps
    size_t size = 0;        // of whole pages
    Access access = Access::kTargetReads;
    // Not 0: replaces what the target has mapped there.
    RemoteAddr at;
  };

  // Errors say what was refused (SHARED_MEMORY_REFUSED: a limit of the target, SECCOMP_ACTIVE, ...)
  // and leave nothing behind.
  static Result<SharedMapping> Create(Stopped& stopped, const Request& request);
  // The same with a memfd that the target has just made; its other threads may have got hold of it.
  static Result<SharedMapping> Adopt(Stopped& stopped, int remote_fd, const Request& request);
  // Unmaps it here; in the target it stays until Unmap() or the end of its image.
  ~SharedMapping();
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;

  RemoteAddr remote() const { return remote_; }
  std::span<std::byte> bytes() const { return bytes_; }
  // Also in a process that has a copy of the target's memory.
  Status Unmap(Stopped& stopped) const;

 private:
  explicit SharedMapping(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
  RemoteAddr remote_;
};

}  // namespace probed::tracee
