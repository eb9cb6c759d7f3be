#pragma once
// Memory of ours in a target: executable pages near the code they serve. One injected mmap per
// +-2 GiB neighbourhood, PROT_READ|PROT_EXEC from the start (written through ProcessMemory, so
// never writable in the target). Freed with the process, or by Release() at detach.

#include <algorithm>
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
  // Most of what a jump reaches.
  bool IsWide() const;
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

  // What an allocation takes up.
  static size_t Rounded(size_t size) {
    return (std::max<size_t>(size, 1) + kAlignment - 1) / kAlignment * kAlignment;
  }

  // `size` bytes (rounded up to kAlignment) in the window, where memory is mapped already.
  std::optional<RemoteAddr> Take(const Window& window, size_t size);
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

  // Several allocations in one stop: what the process has mapped is looked at once.
  class Growth {
   public:
    Growth(CodeArena& arena, Stopped& stopped) : arena_(arena), stopped_(stopped) {}
    Result<RemoteAddr> Allocate(const Window& window, size_t size);
    // So much will be taken in wide windows: the next block for such a one has room for it.
    void ExpectWide(size_t bytes) { expected_ = bytes; }

   private:
    Status LookAtMappings();
    Status MapBlock(const Window& window, size_t size);
    Status MapIn(const Window& window, size_t size);

    CodeArena& arena_;
    Stopped& stopped_;
    size_t expected_ = 0;
    std::vector<elf::Mapping> mappings_;  // ascending; empty: not looked at
    std::optional<Error> refused_;        // a limit of the process: nor will others be mapped
  };

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
  size_t NextBlockSize(const Window& window, size_t expected) const;

  Process& process_;
  std::vector<Block> blocks_;
};

}  // namespace probed::tracee
