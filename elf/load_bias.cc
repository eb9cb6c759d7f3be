#include "elf/load_bias.h"

namespace probed::elf {
namespace {

// A mapping starts on a page, so a little before the segment; mprotect may have split it since, so
// perhaps also later.
bool ShowsSegment(const Mapping& mapping, const Segment& segment) {
  if (!mapping.executable || !segment.executable) return false;
  uint64_t length = mapping.end - mapping.start;
  bool holds_start = segment.offset >= mapping.offset && segment.offset - mapping.offset < length;
  return holds_start || segment.HoldsInFile(mapping.offset);
}

}  // namespace

Result<uint64_t> LoadBias(const File& file, const Module& module) {
  for (const Mapping& mapping : module.mappings) {
    for (const Segment& segment : file.segments()) {
      if (!ShowsSegment(mapping, segment)) continue;
      uint64_t remote_start = mapping.start.value - mapping.offset.value + segment.offset.value;
      return remote_start - segment.address.value;
    }
  }
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "NOT_MAPPED",
               .message = file.name() + " is not mapped executable there",
               .hint = "",
               .metadata = {{"path", file.name()}}};
}

}  // namespace probed::elf
