#include "engine/arch/x86_64/flow/code_image.h"

#include <algorithm>

namespace probed::arch::flow {
namespace {

Error Problem(const char* reason, const char* message) {
  return {.code = ErrorCode::kFailedPrecondition,
          .reason = reason,
          .message = message,
          .hint = "",
          .metadata = {}};
}

std::vector<const ModuleImage::Segment*> ExecutableSegments(const ModuleImage& image) {
  std::vector<const ModuleImage::Segment*> found;
  for (const ModuleImage::Segment& segment : image.segments) {
    bool fits = segment.bytes.size() <= UINT64_MAX - segment.address;
    if (segment.executable && !segment.bytes.empty() && fits) found.push_back(&segment);
  }
  std::sort(found.begin(), found.end(),
            [](const auto* a, const auto* b) { return a->address < b->address; });
  return found;
}

}  // namespace

Result<CodeImage> CodeImage::Copy(const ModuleImage& image) {
  CodeImage code;
  for (const ModuleImage::Segment* segment : ExecutableSegments(image)) {
    if (!code.segments_.empty() && segment->address < code.segments_.back().end) continue;
    if (segment->bytes.size() > kMaxBytes - code.bytes_.size()) {
      return Problem("CODE_TOO_LARGE", "the module's code is too large to analyse");
    }
    code.first_.push_back(code.bytes_.size());
    code.segments_.push_back({segment->address, segment->address + segment->bytes.size()});
    code.bytes_.insert(code.bytes_.end(), segment->bytes.begin(), segment->bytes.end());
  }
  if (code.segments_.empty()) return Problem("NO_CODE", "the module has no executable segment");
  return code;
}

std::optional<uint64_t> CodeImage::IndexOf(uint64_t address) const {
  auto next = std::upper_bound(
      segments_.begin(), segments_.end(), address,
      [](uint64_t value, const CodeRange& segment) { return value < segment.start; });
  if (next == segments_.begin()) return std::nullopt;
  const CodeRange& segment = *std::prev(next);
  if (address >= segment.end) return std::nullopt;
  return first_[static_cast<size_t>(std::prev(next) - segments_.begin())] +
         (address - segment.start);
}

uint64_t CodeImage::AddressOf(uint64_t index) const {
  auto next = std::upper_bound(first_.begin(), first_.end(), index);
  size_t segment = static_cast<size_t>(std::prev(next) - first_.begin());
  return segments_[segment].start + (index - first_[segment]);
}

std::span<const uint8_t> CodeImage::From(uint64_t address) const {
  std::optional<uint64_t> index = IndexOf(address);
  if (!index.has_value()) return {};
  auto next = std::upper_bound(first_.begin(), first_.end(), *index);
  uint64_t end = next == first_.end() ? bytes_.size() : *next;
  return std::span(bytes_).subspan(*index, end - *index);
}

}  // namespace probed::arch::flow
