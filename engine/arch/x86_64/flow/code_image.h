#pragma once
// The executable bytes of a module, copied, with a dense number for each byte.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/arch/x86_64/flow.h"

namespace probed::arch::flow {

class CodeImage {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{512} << 20;

  // CODE_TOO_LARGE, or NO_CODE when there is no executable segment. Of segments that overlap, the
  // first by address counts.
  static Result<CodeImage> Copy(const ModuleImage& image);

  uint64_t size() const { return bytes_.size(); }
  const std::vector<CodeRange>& segments() const { return segments_; }  // ascending, apart

  std::optional<uint64_t> IndexOf(uint64_t address) const;
  uint64_t AddressOf(uint64_t index) const;
  bool Contains(uint64_t address) const { return IndexOf(address).has_value(); }
  // From `address` to the end of its segment; empty outside.
  std::span<const uint8_t> From(uint64_t address) const;

 private:
  std::vector<CodeRange> segments_;
  std::vector<uint64_t> first_;  // index of each segment's first byte
  std::vector<uint8_t> bytes_;
};

}  // namespace probed::arch::flow
