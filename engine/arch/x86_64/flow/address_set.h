#pragma once
// A set of addresses in code, one bit for each byte.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace probed::arch::flow {

// Members are indices of CodeImage.
class AddressSet {
 public:
  explicit AddressSet(uint64_t size) : words_((size + 63) / 64) {}

  bool Has(uint64_t index) const { return (words_[index / 64] >> index % 64 & 1) != 0; }
  void Add(uint64_t index) { words_[index / 64] |= uint64_t{1} << index % 64; }

  // The first member at or after `index` and below `end`, else `end`.
  uint64_t FindFrom(uint64_t index, uint64_t end) const {
    while (index < end) {
      uint64_t rest = words_[index / 64] >> index % 64;
      if (rest != 0) return std::min(end, index + static_cast<uint64_t>(std::countr_zero(rest)));
      index = (index / 64 + 1) * 64;
    }
    return end;
  }

  uint64_t Count() const {
    uint64_t count = 0;
    for (uint64_t word : words_)
      count += static_cast<uint64_t>(std::popcount(word));
    return count;
  }

 private:
  std::vector<uint64_t> words_;
};

}  // namespace probed::arch::flow
