#include "engine/tracee/code_arena.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "elf/module_map.h"
#include "engine/sys/proc.h"
#include "engine/tracee/process.h"
#include "engine/tracee/remote_call.h"

namespace probed::tracee {
namespace {

constexpr uint64_t kPageSize = 4096;
constexpr size_t kBlockSize = 256u << 10;
constexpr size_t kAlignment = 16;
// A rel32 reaches 2 GiB; the margin leaves room for the instruction itself and for the code around
// `near` that will jump to the same block.
constexpr uint64_t kReach = (uint64_t{1} << 31) - (uint64_t{1} << 20);
constexpr uint64_t kLowestAddress = uint64_t{1} << 20;  // above any vm.mmap_min_addr
constexpr uint64_t kHighestAddress = (uint64_t{1} << 47) - kPageSize;
// Room that a growing stack or heap keeps between itself and us.
constexpr uint64_t kGuardGap = uint64_t{1} << 20;

uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

uint64_t Distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

bool Reaches(RemoteAddr start, size_t size, RemoteAddr near) {
  return Distance(start.value, near.value) < kReach &&
         Distance(start.value + size, near.value) < kReach;
}

// The place in [low, high) that is nearest to `near`, if `size` bytes fit.
std::optional<uint64_t> PlaceInGap(uint64_t low, uint64_t high, uint64_t near, size_t size) {
  if (low + 2 * kGuardGap + size > high) return std::nullopt;
  low = RoundUp(low + kGuardGap, kPageSize);
  high = (high - kGuardGap - size) / kPageSize * kPageSize;
  if (low > high) return std::nullopt;
  return std::clamp(near / kPageSize * kPageSize, low, high);
}

}  // namespace

std::optional<RemoteAddr> FindGap(const std::vector<elf::Mapping>& mappings, RemoteAddr near,
                                  size_t size) {
  std::optional<RemoteAddr> best;
  uint64_t gap_start = kLowestAddress;
  auto consider = [&](uint64_t gap_end) {
    std::optional<uint64_t> place = PlaceInGap(gap_start, gap_end, near.value, size);
    if (!place || !Reaches(RemoteAddr{*place}, size, near)) return;
    if (!best || Distance(*place, near.value) < Distance(best->value, near.value)) {
      best = RemoteAddr{*place};
    }
  };
  for (const elf::Mapping& mapping : mappings) {
    if (mapping.start.value >= kHighestAddress) break;
    consider(mapping.start.value);
    gap_start = std::max(gap_start, mapping.end.value);
  }
  consider(kHighestAddress);
  return best;
}

std::optional<RemoteAddr> CodeArena::Block::Take(size_t bytes) {
  for (auto [range_start, range_size] : free_ranges) {
    if (range_size < bytes) continue;
    free_ranges.erase(range_start);
    if (range_size > bytes) free_ranges[range_start + bytes] = range_size - bytes;
    return range_start;
  }
  return std::nullopt;
}

void CodeArena::Block::Give(RemoteAddr address, size_t bytes) {
  auto after = free_ranges.lower_bound(address);
  if (after != free_ranges.end() && address + bytes == after->first) {
    bytes += after->second;
    after = free_ranges.erase(after);
  }
  if (after != free_ranges.begin()) {
    auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += bytes;
      return;
    }
  }
  free_ranges[address] = bytes;
}

CodeArena::CodeArena(Process& process) : process_(process) {}

Result<RemoteAddr> CodeArena::Allocate(Stopped& stopped, RemoteAddr near, size_t size) {
  size = RoundUp(std::max<size_t>(size, 1), kAlignment);
  for (Block& block : blocks_) {
    if (!Reaches(block.start, block.size, near)) continue;
    if (std::optional<RemoteAddr> address = block.Take(size)) return *address;
  }
  PROBED_TRY(Block * block, MapBlock(stopped, near, size));
  return *block->Take(size);
}

Result<CodeArena::Block*> CodeArena::MapBlock(Stopped& stopped, RemoteAddr near, size_t size) {
  size_t block_size = RoundUp(std::max(size, kBlockSize), kPageSize);
  PROBED_TRY(std::string text, sys::ReadMaps(process_.pid()));
  PROBED_TRY(std::vector<elf::Mapping> mappings, elf::ParseMaps(text));
  std::optional<RemoteAddr> place = FindGap(mappings, near, block_size);
  if (!place) {
    return Error{.code = ErrorCode::kResourceExhausted,
                 .reason = "NO_SPACE_NEARBY",
                 .message = "no free address range within 2 GiB of the probed code",
                 .hint = "",
                 .metadata = {}};
  }
  constexpr uint64_t kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  PROBED_TRY(uint64_t mapped,
             RemoteSyscall(stopped, SYS_mmap,
                           {place->value, block_size, PROT_READ | PROT_EXEC, kFlags, ~0ull, 0}));
  // Before Linux 4.17 MAP_FIXED_NOREPLACE is only a hint.
  if (mapped != place->value) {
    RemoteSyscall(stopped, SYS_munmap, {mapped, block_size, 0, 0, 0, 0}).ok();
    return Error{.code = ErrorCode::kUnimplemented,
                 .reason = "NO_FIXED_MAPPING",
                 .message = "the kernel does not map memory at a chosen place",
                 .hint = "Linux 4.17 or newer is needed",
                 .metadata = {}};
  }
  blocks_.push_back({.start = *place, .size = block_size, .free_ranges = {{*place, block_size}}});
  return &blocks_.back();
}

void CodeArena::Free(RemoteAddr address, size_t size) {
  for (Block& block : blocks_) {
    if (address < block.start || address >= block.start + block.size) continue;
    return block.Give(address, RoundUp(std::max<size_t>(size, 1), kAlignment));
  }
}

bool CodeArena::Contains(RemoteAddr address) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return address >= block.start && address < block.start + block.size;
  });
}

Status CodeArena::Release(Stopped& stopped) {
  while (!blocks_.empty()) {
    const Block& block = blocks_.back();
    PROBED_TRY([[maybe_unused]] uint64_t result,
               RemoteSyscall(stopped, SYS_munmap, {block.start.value, block.size, 0, 0, 0, 0}));
    blocks_.pop_back();
  }
  return {};
}

}  // namespace probed::tracee
