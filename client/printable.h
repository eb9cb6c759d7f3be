#pragma once
// Text of other people's processes for a terminal: names and strings may hold anything, and a
// terminal obeys what it is sent. Pure.

#include <string>
#include <string_view>

namespace probed::client {

enum class Newlines : uint8_t { kEscape, kKeep };

// Control characters (those of C1, too) and what is no UTF-8 become \xNN, in `text` from `from` on.
void MakePrintable(std::string& text, size_t from = 0, Newlines newlines = Newlines::kEscape);

// The UTF-8 of a control character of C1 (U+0080 to U+009F), which some terminals obey.
bool IsC1(std::string_view sequence);

}  // namespace probed::client
