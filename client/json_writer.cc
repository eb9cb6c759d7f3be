#include "client/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "client/printable.h"

namespace probed::client {
namespace {

bool IsContinuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) == 0x80;
}

// The first continuation byte excludes overlong forms, surrogates and code points past U+10FFFF
// (Unicode table 3-7).
bool SecondByteFits(uint8_t lead, uint8_t second) {
  switch (lead) {
    case 0xe0:
      return second >= 0xa0;
    case 0xed:
      return second < 0xa0;
    case 0xf0:
      return second >= 0x90;
    case 0xf4:
      return second < 0x90;
    default:
      return true;
  }
}

size_t LengthFromLead(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

bool IsPlain(char byte) {
  return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

void AppendUnicodeEscape(uint8_t byte, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

void AppendEscaped(char byte, std::string& out) {
  switch (byte) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      AppendUnicodeEscape(static_cast<uint8_t>(byte), out);
  }
}

}  // namespace

size_t Utf8SequenceLength(std::string_view bytes) {
  if (bytes.empty()) return 0;
  auto lead = static_cast<uint8_t>(bytes[0]);
  size_t length = LengthFromLead(lead);
  if (length == 0 || length > bytes.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(bytes[i])) return 0;
  }
  if (length > 1 && !SecondByteFits(lead, static_cast<uint8_t>(bytes[1]))) return 0;
  return length;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t length = Utf8SequenceLength(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

void AppendJsonString(std::string_view bytes, std::string& out) {
  out += '"';
  while (!bytes.empty()) {
    size_t plain = 0;
    while (plain < bytes.size() && IsPlain(bytes[plain]))
      ++plain;
    out.append(bytes.data(), plain);
    bytes.remove_prefix(plain);
    if (bytes.empty()) break;
    size_t length = Utf8SequenceLength(bytes);
    if (IsC1(bytes.substr(0, length))) {
      AppendUnicodeEscape(static_cast<uint8_t>(bytes[1]), out);
    } else if (length > 1) {
      out.append(bytes.data(), length);
    } else {
      AppendEscaped(bytes[0], out);
      length = 1;
    }
    bytes.remove_prefix(length);
  }
  out += '"';
}

void AppendJsonNumber(double number, std::string& out) {
  if (std::isnan(number)) {
    out += "\"NaN\"";
  } else if (std::isinf(number)) {
    out += number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", number);
  }
}

void JsonWriter::Separate() {
  if (!first_) out_ += ',';
  first_ = false;
}

JsonWriter& JsonWriter::BeginObject() {
  Separate();
  out_ += '{';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  out_ += '}';
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  Separate();
  out_ += '[';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  out_ += ']';
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  AppendJsonString(key, out_);
  out_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::RawKey(std::string_view json) {
  Raw(json);
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view bytes) {
  Separate();
  AppendJsonString(bytes, out_);
  return *this;
}

JsonWriter& JsonWriter::Unsigned(uint64_t number) {
  Separate();
  fmt::format_int text(number);
  out_.append(text.data(), text.size());
  return *this;
}

JsonWriter& JsonWriter::Signed(int64_t number) {
  Separate();
  fmt::format_int text(number);
  out_.append(text.data(), text.size());
  return *this;
}

JsonWriter& JsonWriter::Double(double number) {
  Separate();
  AppendJsonNumber(number, out_);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  Separate();
  out_ += "null";
  return *this;
}

}  // namespace probed::client
