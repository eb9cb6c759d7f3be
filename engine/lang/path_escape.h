#pragma once
// Paths in definitions of the extended dialect. A word of a definition ends at white space, so
// bytes that would end it, or begin a comment, stand as \ooo, octal, as /proc/mounts has them.
// Pure.

#include <string>
#include <string_view>

namespace probed::lang {

std::string EscapePath(std::string_view path);
std::string UnescapePath(std::string_view text);

// The kernel has no form for it: its words end there, whatever stands in front.
bool NeedsEscape(std::string_view path);

}  // namespace probed::lang
