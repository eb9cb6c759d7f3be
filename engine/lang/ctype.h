#pragma once
// The kernel's character classes. They are Latin-1: 0xA0 is white space and 0xE9 a letter, whatever
// the locale says. Pure.

#include <string_view>

namespace probed::lang {

bool IsSpace(char c);
bool IsDigit(char c);
bool IsHexDigit(char c);
bool IsAlpha(char c);

// A C identifier, with Latin-1 letters.
bool IsIdentifier(std::string_view name);
// A group: as an identifier, but '-' is a letter too.
bool IsGroupName(std::string_view name);

}  // namespace probed::lang
