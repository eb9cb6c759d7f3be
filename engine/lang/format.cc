#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "engine/lang/print.h"

namespace probed::lang {
namespace {

struct TypeFormat {
  std::string_view declaration;
  std::string_view conversion;
  bool is_signed;
};

// In BaseType's order. The `format` file has no hex or char types: they are u8..u64 (3.6). f32, f64
// and bytes do not exist there; ours follow the pattern.
constexpr std::array<TypeFormat, 18> kFormats = {{
    {"u8", "%u", false},
    {"u16", "%u", false},
    {"u32", "%u", false},
    {"u64", "%Lu", false},
    {"s8", "%d", true},
    {"s16", "%d", true},
    {"s32", "%d", true},
    {"s64", "%Ld", true},
    {"u8", "0x%x", false},
    {"u16", "0x%x", false},
    {"u32", "0x%x", false},
    {"u64", "0x%Lx", false},
    {"u8", "'%c'", false},
    {"__data_loc char[]", "\\\"%s\\\"", true},
    {"__data_loc char[]", "\\\"%s\\\"", true},
    {"f32", "%g", true},
    {"f64", "%g", true},
    {"__data_loc u8[]", "\\\"%s\\\"", false},
}};
static_assert(kFormats.size() == static_cast<size_t>(BaseType::kBytes) + 1);

const TypeFormat& FormatOf(BaseType base) {
  return kFormats[static_cast<size_t>(base)];
}

void AppendFieldLine(std::string_view declaration, uint32_t offset, uint32_t size, bool is_signed,
                     std::string& out) {
  fmt::format_to(std::back_inserter(out), "\tfield:{};\toffset:{};\tsize:{};\tsigned:{};\n",
                 declaration, offset, size, is_signed ? 1 : 0);
}

// A string array keeps its count in the type; any other array shows empty brackets after the name.
std::string Declaration(const FieldSchema& field) {
  const std::string_view type = FormatOf(field.type.base).declaration;
  if (!field.type.is_array) return fmt::format("{} {}", type, field.name);
  if (IsStringLike(field.type.base)) {
    return fmt::format("{}[{}] {}", type, field.type.count, field.name);
  }
  return fmt::format("{} {}[]", type, field.name);
}

uint32_t AppendAddressFields(ProbeKind kind, std::string& out) {
  if (kind == ProbeKind::kEntry) {
    AppendFieldLine("unsigned long __probe_ip", 8, 8, false, out);
    return 16;
  }
  AppendFieldLine("unsigned long __probe_func", 8, 8, false, out);
  AppendFieldLine("unsigned long __probe_ret_ip", 16, 8, false, out);
  return 24;
}

void AppendConversions(const FieldSchema& field, std::string& out) {
  const std::string_view conversion = FormatOf(field.type.base).conversion;
  out += fmt::format(" {}=", field.name);
  if (field.type.is_array) out += '{';
  for (uint32_t i = 0; i < field.type.count; ++i) {
    if (i > 0) out += ',';
    out += conversion;
  }
  if (field.type.is_array) out += '}';
}

void AppendReferences(const FieldSchema& field, std::string& out) {
  const bool is_string = IsStringLike(field.type.base);
  for (uint32_t i = 0; i < field.type.count; ++i) {
    const std::string index = field.type.is_array ? fmt::format("[{}]", i) : "";
    out += is_string ? fmt::format(", __get_str({}{})", field.name, index)
                     : fmt::format(", REC->{}{}", field.name, index);
  }
}

std::string PrintFormat(const EventSchema& schema) {
  const bool is_return = schema.kind == ProbeKind::kReturn;
  std::string text = is_return ? "\"(%lx <- %lx)" : "\"(%lx)";
  for (const FieldSchema& field : schema.fields)
    AppendConversions(field, text);
  text += is_return ? "\", REC->__probe_func, REC->__probe_ret_ip" : "\", REC->__probe_ip";
  for (const FieldSchema& field : schema.fields)
    AppendReferences(field, text);
  return text;
}

}  // namespace

std::string FormatFile(const EventSchema& schema, int id) {
  std::string out = fmt::format("name: {}\nID: {}\nformat:\n", schema.event, id);
  AppendFieldLine("unsigned short common_type", 0, 2, false, out);
  AppendFieldLine("unsigned char common_flags", 2, 1, false, out);
  AppendFieldLine("unsigned char common_preempt_count", 3, 1, false, out);
  AppendFieldLine("int common_pid", 4, 4, true, out);
  out += '\n';
  uint32_t offset = AppendAddressFields(schema.kind, out);
  for (const FieldSchema& field : schema.fields) {
    const uint32_t size = KernelElementSize(field.type.base) * field.type.count;
    AppendFieldLine(Declaration(field), offset, size, FormatOf(field.type.base).is_signed, out);
    offset += size;
  }
  return out + "\nprint fmt: " + PrintFormat(schema) + "\n";
}

}  // namespace probed::lang
