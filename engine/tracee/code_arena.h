#pragma once
// Memory of ours in a target: executable pages near the code they serve. One injected mmap per
// +-2 GiB neighbourhood, PROT_READ|PROT_EXEC from the start (written through ProcessMemory, so
// never writable in the target). Freed with the process, or by Release() at detach.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "elf/module_map.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

// Where an allocation may start: low <= start < high, as near to `near` as can be.
struct Window {
  RemoteAddr low, high;
  RemoteAddr near;

  // What a jump with a 32-bit displacement reaches from `site` and from the code around it.
  static Window Around(RemoteAddr site);
};

// Start of a free page range of `size` bytes that starts in the window, or in the page in which the
// window starts. `mappings` ascending. Pure.
std::optional<RemoteAddr> FindGap(const std::vector<elf::Mapping>& mappings, const Window& window,
                                  size_t size);

class CodeArena {
 public:
  explicit CodeArena(Process& process);

  // Everything begins and ends at multiples of this.
  static constexpr size_t kAlignment = 16;

  // `size` bytes (rounded up to kAlignment) in the window.
  // Injects an mmap through `stopped` when no block fits. SECCOMP_ACTIVE when that is not allowed.
  Result<RemoteAddr> Allocate(Stopped& stopped, const Window& window, size_t size);
  void Free(RemoteAddr address, size_t size);
  bool Contains(RemoteAddr address) const;
  // Unmaps every block; the caller knows that no thread is inside.
  Status Release(Stopped& stopped);
  // The process has exec'ed: the blocks went with the old image.
  void Forget() { blocks_.clear(); }
  // The process was forked without sharing memory: it has copies of the parent's blocks.
  void CopyBlocks(const CodeArena& parent) { blocks_ = parent.blocks_; }

 private:
  struct Block {
    RemoteAddr start;
    size_t size = 0;
    size_t free_bytes = 0;
    // Free ranges by start; neighbours are merged.
    std::map<RemoteAddr, size_t> free_ranges;

    std::optional<RemoteAddr> Take(const Window& window, size_t bytes);
    void Give(RemoteAddr address, size_t bytes);
  };
  size_t NextBlockSize(const Window& window) const;
  Result<Block*> MapBlock(Stopped& stopped, const Window& window, size_t size);

  Process& process_;
  std::vector<Block> blocks_;
};

}  // namespace probed::tracee
