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
constexpr size_t kLargestBlock = 4u << 20;
// Each is a mapping of the target, which may have 65,530 (vm.max_map_count).
constexpr size_t kMaxBlocks = 1024;
// A rel32 reaches 2 GiB; the margin leaves room for the instruction itself and for the code around
// `near` that will jump to the same block.
constexpr uint64_t kReach = (uint64_t{1} << 31) - (uint64_t{1} << 20);
constexpr uint64_t kLowestAddress = uint64_t{1} << 20;  // above any vm.mmap_min_addr
constexpr uint64_t kHighestAddress = (uint64_t{1} << 47) - kPageSize;
// Room that is left beside a mapping, which may grow.
constexpr uint64_t kGuardGap = uint64_t{1} << 20;
constexpr uint64_t kHeapRoom = uint64_t{256} << 20;   // where brk fails, allocators go on with mmap
constexpr uint64_t kStackRoom = uint64_t{128} << 20;  // what the kernel keeps free below a stack

uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

uint64_t Distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

Error NoSpace() {
  return {.code = ErrorCode::kResourceExhausted,
          .reason = "NO_SPACE_NEARBY",
          .message = "no free address range that a jump from the probed code reaches",
          .hint = "",
          .metadata = {}};
}

bool IsRefusedByKernel(const Status& mapped) {
  return !mapped.ok() && mapped.error().reason != NoSpace().reason;
}

// The place between two mappings that is nearest to what the window wants, if `size` bytes fit.
std::optional<uint64_t> PlaceInGap(uint64_t gap_start, uint64_t gap_end, const Window& window,
                                   size_t size) {
  if (gap_start + size > gap_end) return std::nullopt;
  uint64_t low = std::max(RoundUp(gap_start, kPageSize), window.low.value / kPageSize * kPageSize);
  uint64_t high = std::min(gap_end - size, window.high.value - 1) / kPageSize * kPageSize;
  if (low > high) return std::nullopt;
  return std::clamp(window.near.value / kPageSize * kPageSize, low, high);
}

}  // namespace

Window Window::Around(RemoteAddr site) {
  return {.low = RemoteAddr{site.value - std::min(site.value, kReach)},
          .high = RemoteAddr{site.value + kReach},
          .near = site};
}

bool Window::IsWide() const {
  return high - low >= kReach;
}

std::optional<RemoteAddr> FindGap(const std::vector<elf::Mapping>& mappings, const Window& window,
                                  size_t size) {
  std::optional<RemoteAddr> best;
  uint64_t gap_start = kLowestAddress;
  auto consider = [&](uint64_t gap_end) {
    std::optional<uint64_t> place = PlaceInGap(gap_start, gap_end, window, size);
    uint64_t near = window.near.value;
    if (place && (!best || Distance(*place, near) < Distance(best->value, near))) {
      best = RemoteAddr{*place};
    }
  };
  for (const elf::Mapping& mapping : mappings) {
    if (mapping.start.value >= kHighestAddress) break;
    uint64_t below = mapping.path == "[stack]" ? kStackRoom : kGuardGap;
    if (mapping.start.value > below) consider(mapping.start.value - below);
    uint64_t above = mapping.path == "[heap]" ? kHeapRoom : kGuardGap;
    gap_start = std::max(gap_start, mapping.end.value + above);
  }
  consider(kHighestAddress - kGuardGap);
  return best;
}

std::optional<RemoteAddr> CodeArena::Block::Take(const Window& window, size_t bytes) {
  if (free_bytes < bytes) return std::nullopt;
  RemoteAddr lowest{RoundUp(window.low.value, kAlignment)};
  for (auto [range_start, range_size] : free_ranges) {
    RemoteAddr range_end = range_start + range_size;
    RemoteAddr place = std::max(range_start, lowest);
    if (place >= window.high) break;
    if (place + bytes > range_end) continue;
    free_ranges.erase(range_start);
    free_bytes -= bytes;
    if (place > range_start) free_ranges[range_start] = place - range_start;
    if (place + bytes < range_end) free_ranges[place + bytes] = range_end - (place + bytes);
    return place;
  }
  return std::nullopt;
}

void CodeArena::Block::Give(RemoteAddr address, size_t bytes) {
  free_bytes += bytes;
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

std::optional<RemoteAddr> CodeArena::Take(const Window& window, size_t size) {
  for (Block& block : blocks_) {
    if (std::optional<RemoteAddr> address = block.Take(window, Rounded(size))) return address;
  }
  return std::nullopt;
}

Result<RemoteAddr> CodeArena::Allocate(Stopped& stopped, const Window& window, size_t size) {
  return Growth(*this, stopped).Allocate(window, size);
}

// As much as there is already, where many others may be served from it: so there are few blocks to
// look through, however many sites there are.
size_t CodeArena::NextBlockSize(const Window& window, size_t expected) const {
  if (!window.IsWide()) return kBlockSize;
  size_t mapped = 0;
  for (const Block& block : blocks_)
    mapped += block.size;
  return std::clamp(RoundUp(std::max(mapped, expected), kBlockSize), kBlockSize, kLargestBlock);
}

Result<RemoteAddr> CodeArena::Growth::Allocate(const Window& window, size_t size) {
  if (auto address = arena_.Take(window, size)) return *address;
  if (window.IsWide() && refused_) return *refused_;
  const bool looked_before = !mappings_.empty();
  Status mapped = MapBlock(window, Rounded(size));
  if (IsRefusedByKernel(mapped) && looked_before) {
    mappings_.clear();  // another thread may have mapped something there
    mapped = MapBlock(window, Rounded(size));
  }
  if (IsRefusedByKernel(mapped) && window.IsWide()) refused_ = mapped.error();
  PROBED_RETURN_IF_ERROR(std::move(mapped));
  if (auto address = arena_.Take(window, size)) return *address;
  return NoSpace();
}

Status CodeArena::Growth::LookAtMappings() {
  if (!mappings_.empty()) return {};
  PROBED_TRY(std::string text, sys::ReadMaps(arena_.process_.pid()));
  PROBED_TRY(mappings_, elf::ParseMaps(text));
  return {};
}

// As large as is good, or as small as will do.
Status CodeArena::Growth::MapBlock(const Window& window, size_t size) {
  if (arena_.blocks_.size() == kMaxBlocks) return NoSpace();
  PROBED_RETURN_IF_ERROR(LookAtMappings());
  // The window may start anywhere in the block's first page.
  const size_t least = RoundUp(std::max(size + kPageSize, kBlockSize), kPageSize);
  const size_t good = std::max(least, arena_.NextBlockSize(window, expected_));
  Status mapped = MapIn(window, good);
  return mapped.ok() || good == least ? mapped : MapIn(window, least);
}

Status CodeArena::Growth::MapIn(const Window& window, size_t size) {
  std::optional<RemoteAddr> place = FindGap(mappings_, window, size);
  if (!place) return NoSpace();
  constexpr uint64_t kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  PROBED_TRY(uint64_t mapped,
             RemoteSyscall(stopped_, SYS_mmap,
                           {place->value, size, PROT_READ | PROT_EXEC, kFlags, ~0ull, 0}));
  // Before Linux 4.17 MAP_FIXED_NOREPLACE is only a hint.
  if (mapped != place->value) {
    RemoteSyscall(stopped_, SYS_munmap, {mapped, size, 0, 0, 0, 0}).ok();
    return Error{.code = ErrorCode::kUnimplemented,
                 .reason = "NO_FIXED_MAPPING",
                 .message = "the kernel does not map memory at a chosen place",
                 .hint = "Linux 4.17 or newer is needed",
                 .metadata = {}};
  }
  arena_.blocks_.push_back(
      {.start = *place, .size = size, .free_bytes = size, .free_ranges = {{*place, size}}});
  elf::Mapping ours;
  ours.start = *place;
  ours.end = *place + size;
  auto is_behind = [&](const elf::Mapping& mapping) { return mapping.start > ours.start; };
  auto behind = std::find_if(mappings_.begin(), mappings_.end(), is_behind);
  mappings_.insert(behind, std::move(ours));
  return {};
}

void CodeArena::Free(RemoteAddr address, size_t size) {
  for (Block& block : blocks_) {
    if (address < block.start || address >= block.start + block.size) continue;
    return block.Give(address, Rounded(size));
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
