#include "engine/lang/print.h"

#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace probed::lang {
namespace {

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
  auto end = std::back_inserter(out);
  if (base == BaseType::kChar) {
    out += '\'';
    out += static_cast<char>(value);
    out += '\'';
  } else if (IsHex(base)) {
    fmt::format_to(end, "0x{:x}", value);
  } else {
    fmt::format_to(end, "{}", value);
  }
}

void AppendScalar(BaseType base, const Scalar& scalar, std::string& out) {
  auto end = std::back_inserter(out);
  if (const auto* text = std::get_if<StringValue>(&scalar)) {
    AppendString(base, *text, out);
  } else if (const auto* number = std::get_if<uint64_t>(&scalar)) {
    AppendUnsigned(base, *number, out);
  } else if (const auto* signed_number = std::get_if<int64_t>(&scalar)) {
    fmt::format_to(end, "{}", *signed_number);
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

}  // namespace

void AppendArguments(const EventSchema& schema, const std::vector<Value>& values,
                     std::string& out) {
  for (size_t i = 0; i < schema.fields.size() && i < values.size(); ++i) {
    out += ' ';
    out += schema.fields[i].name;
    out += '=';
    AppendValue(schema.fields[i].type.base, values[i], out);
  }
}

void AppendTraceLine(const TraceLine& line, const EventSchema& schema,
                     const std::vector<Value>& values, std::string& out) {
  const uint64_t microseconds = (line.monotonic_ns + 500) / 1000;  // ftrace rounds to nearest
  auto end = std::back_inserter(out);
  fmt::format_to(end, "{:>16}-{:<7} [{:03}] {} {:5}.{:06}: {}: ", line.comm, line.tid, line.cpu,
                 line.flags, microseconds / 1'000'000, microseconds % 1'000'000, line.event);
  if (line.kind == ProbeKind::kReturn) {
    fmt::format_to(end, "(0x{:x} <- 0x{:x})", line.ip, line.function);
  } else {
    fmt::format_to(end, "(0x{:x})", line.ip);
  }
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
