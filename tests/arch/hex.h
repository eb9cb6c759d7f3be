#pragma once
// Instruction bytes as people write them: "48 8b 05 10 00 00 00".

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace probed::arch {

// Spaces are ignored; stops at the first character that is no hex digit.
std::vector<uint8_t> Hex(std::string_view text);
std::string ToHex(std::span<const uint8_t> bytes);

}  // namespace probed::arch
