#pragma once
// Shell patterns over names, in linear space and time n * m: no pattern can make it slow.

#include <string_view>

namespace probed::elf {

// '*' any run, '?' any one character, "[a-z]" and "[!a-z]" classes, '\' takes the next one as it
// is. The whole name must match. An unclosed '[' is an ordinary character. glob(7).
bool GlobMatches(std::string_view pattern, std::string_view name);

}  // namespace probed::elf
