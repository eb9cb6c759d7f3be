#include "engine/lang/packed_hit.h"

#include <bit>
#include <cstring>

namespace probed::lang {

static_assert(std::endian::native == std::endian::little);

std::optional<PackedHitReader::Hit> PackedHitReader::Next() {
  Hit hit;
  if (rest_.size() < sizeof(hit.header)) return std::nullopt;
  std::memcpy(&hit.header, rest_.data(), sizeof(hit.header));
  const size_t bytes = hit.header.record_bytes;
  if (bytes < sizeof(hit.header) || bytes > rest_.size() ||
      hit.header.payload_bytes > bytes - sizeof(hit.header))
    return std::nullopt;
  hit.payload = rest_.subspan(sizeof(hit.header), hit.header.payload_bytes);
  rest_ = rest_.subspan(bytes);
  return hit;
}

}  // namespace probed::lang
