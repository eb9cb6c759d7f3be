#pragma once
// Memory of ours in a target: executable pages near the code they serve. One injected mmap per
// +-2 GiB neighbourhood, PROT_READ|PROT_EXEC from the start (written through ProcessMemory, so never
// writable in the target). Freed with the process, or by Release() at detach.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

class CodeArena {
 public:
  explicit CodeArena(Process& process);

  // `size` bytes (rounded up to 16) whose whole neighbourhood lies within +-2 GiB of `near`.
  // Injects an mmap through `stopped` when no block fits. SECCOMP_ACTIVE when that is not allowed.
  Result<RemoteAddr> Allocate(Stopped& stopped, RemoteAddr near, size_t size);
  void Free(RemoteAddr address, size_t size);
  bool Contains(RemoteAddr address) const;
  // Unmaps every block; the caller knows that no thread is inside.
  Status Release(Stopped& stopped);
  // The process has exec'ed or was forked without sharing: forget (exec) or keep (fork) blocks.
  void Forget();

 private:
  struct Block {
    RemoteAddr start;
    size_t size = 0;
    size_t used = 0;
    std::vector<std::pair<RemoteAddr, size_t>> free_list;
  };
  Process& process_;
  std::vector<Block> blocks_;
};

}  // namespace probed::tracee
