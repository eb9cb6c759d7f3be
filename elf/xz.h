#pragma once
// Decompression of .gnu_debugdata.

#include <cstdint>
#include <span>
#include <vector>

namespace probed::elf {

// Empty when the data is not xz, is damaged, or would grow beyond `limit` bytes.
std::vector<uint8_t> DecompressXz(std::span<const uint8_t> compressed, size_t limit);

}  // namespace probed::elf
