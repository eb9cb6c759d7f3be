#pragma once
// What a kprobe at a place of the kernel would meet, told before it is tried. Thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "engine/kernel/functions.h"
#include "engine/kernel/kprobes.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {

// The kernel's own words on its functions. Some may be kept from us: then less is known.
struct Facts {
  std::vector<KernelFunction> functions;
  std::optional<Kprobes> kprobes;
  // available_filter_functions, with other names of the same functions
  std::optional<std::unordered_set<std::string>> traceable;
  bool has_kprobe_events = false;
};

struct FactPlaces {
  std::string kallsyms = "/proc/kallsyms";
  KprobePlaces kprobes = {};
  TracefsPlaces tracefs = {};
};

Result<Facts> ReadFacts(const FactPlaces& places = {});

struct KernelPlace {
  KernelFunction function;
  uint64_t offset = 0;
  std::string obstacle;  // why the kernel would refuse a kprobe there; empty: nothing known
};

// `location`: [MODULE:]SYMBOL[+OFFSET] or 0xADDRESS. KERNEL_SYMBOL_NOT_FOUND with suggestions,
// KERNEL_PLACE_INVALID.
Result<KernelPlace> ExplainPlace(const Facts& facts, const std::string& location);

// Why kprobe_events would refuse an entry of the function, whatever its name.
std::string ObstacleOf(const Facts& facts, const KernelFunction& function, uint64_t offset);

}  // namespace probed::kernel
