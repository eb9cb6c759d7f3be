#include "engine/lang/filter_cpus.h"

#include <algorithm>
#include <limits>

#include "engine/lang/ctype.h"

namespace probed::lang {
namespace {

struct Region {
  uint64_t start = 0;
  uint64_t end = 0;
  // Of each `group` CPUs the first `used`.
  uint64_t used = std::numeric_limits<uint64_t>::max();
  uint64_t group = std::numeric_limits<uint64_t>::max();
};

class Reader {
 public:
  Reader(std::string_view text, uint32_t cpus) : rest_(text), last_(cpus - 1) {}

  // False at the end of the list.
  bool SkipSeparators() {
    while (!rest_.empty() && AtSeparator())
      rest_.remove_prefix(1);
    return !rest_.empty();
  }

  std::optional<Region> ReadRegion() {
    Region region;
    if (TakeAll()) {
      region.end = last_;
    } else {
      if (!Number(region.start)) return std::nullopt;
      region.end = region.start;
      if (AtEnd()) return LastOnLine(region);
      if (!Take('-') || !Number(region.end)) return std::nullopt;
    }
    if (AtEnd()) return LastOnLine(region);
    const bool pattern = Take(':') && Number(region.used) && Take('/') && Number(region.group);
    return pattern ? std::optional(region) : std::nullopt;
  }

 private:
  bool AtSeparator() const { return IsSpace(rest_[0]) || rest_[0] == ','; }
  bool AtEnd() const { return rest_.empty() || AtSeparator(); }

  // A newline after a region, but not after a pattern, ends the list.
  Region LastOnLine(Region region) {
    if (rest_.starts_with('\n')) rest_ = {};
    return region;
  }

  bool Take(char c) {
    const bool taken = rest_.starts_with(c);
    if (taken) rest_.remove_prefix(1);
    return taken;
  }

  bool TakeAll() {
    constexpr std::string_view kAll = "all";
    const bool taken =
        rest_.size() >= kAll.size() && std::equal(kAll.begin(), kAll.end(), rest_.begin(),
                                                  [](char a, char b) { return a == (b | 0x20); });
    if (taken) rest_.remove_prefix(kAll.size());
    return taken;
  }

  // Decimal, or "N" for the last CPU.
  bool Number(uint64_t& value) {
    value = last_;
    if (Take('N')) return true;
    size_t length = 0;
    for (value = 0; length < rest_.size() && IsDigit(rest_[length]); ++length) {
      value = value * 10 + static_cast<uint64_t>(rest_[length] - '0');
      if (value > std::numeric_limits<uint32_t>::max()) return false;
    }
    rest_.remove_prefix(length);
    return length > 0;
  }

  std::string_view rest_;
  uint64_t last_;
};

void Add(const Region& region, FilterSet& set) {
  const uint64_t used = std::min(region.used, region.group);
  for (uint64_t cpu = region.start; cpu <= region.end; ++cpu) {
    if ((cpu - region.start) % region.group < used) set[cpu / 64] |= uint64_t{1} << (cpu % 64);
  }
}

}  // namespace

std::optional<FilterSet> ParseCpuList(std::string_view text, uint32_t cpus) {
  Reader reader(text, cpus);
  FilterSet set((cpus + 63) / 64);
  while (reader.SkipSeparators()) {
    const auto region = reader.ReadRegion();
    if (!region || region->start > region->end || region->end >= cpus) return std::nullopt;
    if (region->group == 0 || region->used > region->group) return std::nullopt;
    Add(*region, set);
  }
  return set;
}

}  // namespace probed::lang
