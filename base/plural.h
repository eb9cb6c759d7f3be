#pragma once
// Numbers of things in sentences.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace probed {

// "1 probe", "2 probes", "3 processes".
inline std::string Plural(uint64_t number, std::string_view one) {
  const std::string_view ending = number == 1 ? "" : one.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", number, one, ending);
}

}  // namespace probed
