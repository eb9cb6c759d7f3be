#include "engine/lang/ctype.h"

#include <algorithm>

namespace probed::lang {

bool IsSpace(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == 0xa0;
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool IsAlpha(char c) {
  const auto byte = static_cast<unsigned char>(c);
  const bool ascii = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  // 0xD7 and 0xF7 are the multiplication and division signs.
  return ascii || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7);
}

bool IsIdentifier(std::string_view name) {
  const auto is_letter = [](char c) { return IsAlpha(c) || c == '_'; };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || IsDigit(c); });
}

bool IsGroupName(std::string_view name) {
  const auto is_letter = [](char c) { return IsAlpha(c) || c == '_' || c == '-'; };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || IsDigit(c); });
}

}  // namespace probed::lang
