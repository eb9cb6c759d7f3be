#include "engine/lang/print.h"

#include <charconv>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace probed::lang {
namespace {

// Every hit that is printed passes here: numbers are written without a format string.

void AppendDecimal(uint64_t number, std::string& out) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

void AppendDecimal(int64_t number, std::string& out) {
  const fmt::format_int digits(number);
  out.append(digits.data(), digits.size());
}

void AppendHex(uint64_t number, std::string& out) {
  char digits[16];
  const auto result = std::to_chars(digits, digits + sizeof(digits), number, 16);
  out += "0x";
  out.append(digits, result.ptr);
}

// printf's %WIDTHs: bytes are counted, not characters.
void AppendRight(std::string_view text, size_t width, char fill, std::string& out) {
  if (text.size() < width) out.append(width - text.size(), fill);
  out += text;
}

void AppendRight(uint64_t number, size_t width, char fill, std::string& out) {
  const fmt::format_int digits(number);
  AppendRight({digits.data(), digits.size()}, width, fill, out);
}

void AppendLeft(int64_t number, size_t width, std::string& out) {
  const size_t begin = out.size();
  AppendDecimal(number, out);
  if (out.size() - begin < width) out.append(width - (out.size() - begin), ' ');
}

// The extended dialect's bytes: printable ASCII as it is, the rest as \xNN.
void AppendEscaped(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    }
  }
}

void AppendString(BaseType base, const StringValue& value, std::string& out) {
  if (value.fault) {
    out += "(fault)";
    return;
  }
  out += '"';
  if (base == BaseType::kBytes) {
    AppendEscaped(value.bytes, out);
  } else {
    out += value.bytes;  // raw: ftrace escapes nothing
  }
  out += '"';
}

bool IsHex(BaseType base) {
  return base == BaseType::kX8 || base == BaseType::kX16 || base == BaseType::kX32 ||
         base == BaseType::kX64;
}

void AppendUnsigned(BaseType base, uint64_t value, std::string& out) {
  if (base == BaseType::kChar) {
    out += '\'';
    out += static_cast<char>(value);
    out += '\'';
  } else if (IsHex(base)) {
    AppendHex(value, out);
  } else {
    AppendDecimal(value, out);
  }
}

void AppendScalar(BaseType base, const Scalar& scalar, std::string& out) {
  auto end = std::back_inserter(out);
  if (const auto* text = std::get_if<StringValue>(&scalar)) {
    AppendString(base, *text, out);
  } else if (const auto* number = std::get_if<uint64_t>(&scalar)) {
    AppendUnsigned(base, *number, out);
  } else if (const auto* signed_number = std::get_if<int64_t>(&scalar)) {
    AppendDecimal(*signed_number, out);
  } else if (base == BaseType::kF32) {
    // The shortest text that reads back as the same float.
    fmt::format_to(end, "{}", static_cast<float>(std::get<double>(scalar)));
  } else {
    fmt::format_to(end, "{}", std::get<double>(scalar));
  }
}

void AppendValue(BaseType base, const Value& value, std::string& out) {
  if (value.is_array) out += '{';
  for (size_t i = 0; i < value.elements.size(); ++i) {
    if (i > 0) out += ',';
    AppendScalar(base, value.elements[i], out);
  }
  if (value.is_array) out += '}';
}

void AppendAddress(const TraceLine& line, std::string& out) {
  out += " (";
  AppendHex(line.ip, out);
  if (line.kind == ProbeKind::kReturn) {
    out += " <- ";
    AppendHex(line.function, out);
  }
  out += ')';
}

void AppendText(const Value& value, std::string& out) {
  if (value.elements.empty()) return;
  if (const auto* text = std::get_if<StringValue>(&value.elements.front())) out += text->bytes;
}

// enum trace_flag_type.
constexpr uint8_t kIrqsOff = 0x01;
constexpr uint8_t kReschedLazily = 0x02;
constexpr uint8_t kResched = 0x04;
constexpr uint8_t kHardIrq = 0x08;
constexpr uint8_t kSoftIrq = 0x10;
constexpr uint8_t kPreemptResched = 0x20;
constexpr uint8_t kNmi = 0x40;
constexpr uint8_t kBottomHalvesOff = 0x80;

char InterruptsOff(uint8_t flags) {
  const bool irqs = (flags & kIrqsOff) != 0;
  const bool bottom_halves = (flags & kBottomHalvesOff) != 0;
  if (irqs) return bottom_halves ? 'D' : 'd';
  return bottom_halves ? 'b' : '.';
}

char Rescheduling(uint8_t flags) {
  const bool lazily = (flags & kReschedLazily) != 0;
  const bool now = (flags & kResched) != 0;
  const bool preempt = (flags & kPreemptResched) != 0;
  if (lazily && now) return preempt ? 'B' : 'b';
  if (now) return preempt ? 'N' : 'n';
  if (lazily) return preempt ? 'L' : 'l';
  return preempt ? 'p' : '.';
}

char InterruptContext(uint8_t flags) {
  const bool hard = (flags & kHardIrq) != 0;
  if ((flags & kNmi) != 0) return hard ? 'Z' : 'z';
  if ((flags & kSoftIrq) != 0) return hard ? 'H' : 's';
  return hard ? 'h' : '.';
}

char Depth(uint8_t depth) {
  return depth == 0 ? '.' : "0123456789abcdef"[depth & 15];
}

}  // namespace

std::string TraceFlags(uint8_t flags, uint8_t preempt_count) {
  return {InterruptsOff(flags), Rescheduling(flags), InterruptContext(flags),
          Depth(preempt_count & 15), Depth(static_cast<uint8_t>(preempt_count >> 4))};
}

void AppendArguments(const EventSchema& schema, const std::vector<Value>& values,
                     std::string& out) {
  for (size_t i = 0; i < schema.fields.size() && i < values.size(); ++i)
    AppendArgument(schema.fields[i], values[i], out);
}

void AppendArgument(const FieldSchema& field, const Value& value, std::string& out) {
  out += ' ';
  out += field.name;
  out += '=';
  AppendValue(field.type.base, value, out);
}

void AppendTraceLine(const TraceLine& line, const EventSchema& schema,
                     const std::vector<Value>& values, std::string& out) {
  const uint64_t microseconds = (line.monotonic_ns + 500) / 1000;  // ftrace rounds to nearest
  AppendRight(line.comm, 16, ' ', out);
  out += '-';
  AppendLeft(line.tid, 7, out);
  out += " [";
  AppendRight(line.cpu, 3, '0', out);
  out += "] ";
  out += line.flags;
  out += ' ';
  AppendRight(microseconds / 1'000'000, 5, ' ', out);
  out += '.';
  AppendRight(microseconds % 1'000'000, 6, '0', out);
  out += ": ";
  if (schema.has_text && !values.empty()) return AppendText(values.back(), out);
  out += line.event;
  out += ':';
  if (line.kind != ProbeKind::kTracepoint) AppendAddress(line, out);
  AppendArguments(schema, values, out);
}

std::string FormatTraceLine(const TraceLine& line, const EventSchema& schema,
                            const std::vector<Value>& values) {
  std::string out;
  AppendTraceLine(line, schema, values, out);
  return out;
}

std::string FormatProfileLine(const std::string& path, const std::string& event, uint64_t hits) {
  return fmt::format("  {} {:<44} {:>15}", path, event, hits);
}

}  // namespace probed::lang
