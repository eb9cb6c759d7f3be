#include "client/printable.h"

#include <fmt/format.h>

#include <iterator>

#include "client/json_writer.h"

namespace probed::client {
namespace {

bool IsControl(char byte, Newlines newlines) {
  if (byte == '\t') return false;
  if (byte == '\n') return newlines == Newlines::kEscape;
  const auto value = static_cast<uint8_t>(byte);
  return value < 0x20 || value == 0x7f;
}

// Of what `rest` begins with: 0 when it must not be shown as it is.
size_t PrintableLength(std::string_view rest, Newlines newlines) {
  const size_t length = Utf8SequenceLength(rest);
  if (length == 1) return IsControl(rest[0], newlines) ? 0 : 1;
  return IsC1(rest.substr(0, length)) ? 0 : length;
}

}  // namespace

// Both bytes of a C1 sequence are escaped: the second alone is no UTF-8.
bool IsC1(std::string_view sequence) {
  return sequence.size() == 2 && sequence[0] == '\xc2' && static_cast<uint8_t>(sequence[1]) < 0xa0;
}

void MakePrintable(std::string& text, size_t from, Newlines newlines) {
  size_t good = from;
  while (good < text.size()) {
    const size_t length = PrintableLength(std::string_view(text).substr(good), newlines);
    if (length == 0) break;
    good += length;
  }
  if (good == text.size()) return;  // nearly always
  const std::string rest = text.substr(good);
  text.resize(good);
  for (std::string_view left = rest; !left.empty();) {
    size_t length = PrintableLength(left, newlines);
    if (length > 0) {
      text += left.substr(0, length);
    } else {
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<uint8_t>(left[0]));
      length = 1;
    }
    left.remove_prefix(length);
  }
}

}  // namespace probed::client
