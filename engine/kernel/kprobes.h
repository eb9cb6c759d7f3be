#pragma once
// What the kernel tells of kprobes in debugfs: everybody's probes, the blacklist, the knobs.
// Read anew at each call; thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace probed::kernel {

struct KprobePlaces {
  std::string directory = "/sys/kernel/debug/kprobes";
  std::string optimization = "/proc/sys/debug/kprobes-optimization";
};

struct InstalledKprobe {
  uint64_t address = 0;
  bool is_return = false;
  std::string place;   // SYMBOL+0xOFFSET; an address where there is no symbol
  std::string module;  // empty: the kernel itself
  bool gone = false, disabled = false, optimized = false, ftrace = false;
};

struct BlacklistedRange {
  uint64_t begin = 0, end = 0;
  std::string symbol;
};

struct Kprobes {
  std::vector<InstalledKprobe> installed;
  std::vector<BlacklistedRange> blacklist;
  std::optional<bool> armed;         // debugfs' "enabled"; nothing where it cannot be read
  std::optional<bool> optimization;  // sysctl debug.kprobes-optimization
};

std::vector<InstalledKprobe> ParseKprobeList(std::string_view text);
std::vector<BlacklistedRange> ParseKprobeBlacklist(std::string_view text);

// NO_KPROBES_DIRECTORY (debugfs is not mounted, or the kernel has no kprobes), DEBUGFS_PERMISSION.
Result<Kprobes> ReadKprobes(const KprobePlaces& places = {});

}  // namespace probed::kernel
