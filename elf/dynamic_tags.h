#pragma once
// The dynamic section's tags and the tables that they point to. gABI, "Dynamic Section";
// DT_GNU_HASH as the GNU linker writes it.

#include <map>
#include <span>

#include "elf/headers.h"

namespace probed::elf {

// Borrows the handle and the segments.
class DynamicTags {
 public:
  DynamicTags(const Handle& elf, const Headers& headers, std::span<const Segment> segments);

  uint64_t Tag(int64_t tag) const;  // 0: not there
  // `size` bytes at the address that the tag gives; null when they are not in the file.
  Elf_Data* TableAt(int64_t tag, uint64_t size, Elf_Type type) const;
  // Nothing states the number of dynamic symbols; the hash tables imply it.
  uint64_t CountSymbols() const;

 private:
  uint64_t CountByGnuHash() const;

  const Handle& elf_;
  std::span<const Segment> segments_;
  std::map<int64_t, uint64_t> tags_;
};

}  // namespace probed::elf
