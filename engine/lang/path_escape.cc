#include "engine/lang/path_escape.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/lang/ctype.h"

namespace probed::lang {
namespace {

constexpr size_t kLength = 4;  // \ooo

bool IsOctal(char c) {
  return c >= '0' && c <= '7';
}

bool IsEscape(std::string_view text) {
  return text.size() >= kLength && text[0] == '\\' && text[1] <= '3' && IsOctal(text[1]) &&
         IsOctal(text[2]) && IsOctal(text[3]) && text.substr(1, 3) != "000";
}

bool EndsAWord(char c) {
  return IsSpace(c) || c == '#';
}

}  // namespace

std::string EscapePath(std::string_view path) {
  std::string text;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool is_plain = !EndsAWord(path[i]) && !IsEscape(path.substr(i));
    text += is_plain ? std::string(1, path[i])
                     : fmt::format("\\{:03o}", static_cast<unsigned char>(path[i]));
  }
  return text;
}

std::string UnescapePath(std::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!IsEscape(text.substr(i))) {
      path += text[i];
      continue;
    }
    path +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
    i += kLength - 1;
  }
  return path;
}

bool NeedsEscape(std::string_view path) {
  return std::any_of(path.begin(), path.end(), EndsAWord);
}

}  // namespace probed::lang
