#pragma once
// How far a typed word is from another, for "did you mean".

#include <cstddef>
#include <string_view>

namespace probed {

// Levenshtein distance; anything above `limit` is `limit` + 1.
size_t EditDistance(std::string_view a, std::string_view b, size_t limit);

}  // namespace probed
