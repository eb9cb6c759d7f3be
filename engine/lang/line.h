#pragma once
// A line as tokens: comment gone, split at the kernel's white space. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace probed::lang {

// Longest line: 4094 bytes and a newline, or 4095 bytes at the end of a write.
inline constexpr size_t kWriteBuffer = 4096;

// GROUP:EVENT alone, wildcards allowed: events that the kernel has already.
bool NamesEvents(std::string_view line);

std::vector<std::string> Tokenize(std::string_view line);

// The command as error_log echoes it.
std::string JoinTokens(const std::vector<std::string>& tokens);

}  // namespace probed::lang
