#include "engine/lang/filter_field.h"

#include <cstddef>

namespace probed::lang {
namespace {

using Kind = FilterField::Kind;

struct NamedField {
  std::string_view name;
  Kind kind;
  FilterOperand operand;
  FilterNumber number;
  uint32_t size;
};

// kernel/trace/trace_events.c: trace_define_generic_fields(), trace_define_common_fields().
constexpr NamedField kSharedFields[] = {
    {"CPU", Kind::kCpu, FilterOperand::kCpu, FilterNumber::kSigned, 4},
    {"cpu", Kind::kCpu, FilterOperand::kCpu, FilterNumber::kSigned, 4},
    {"common_cpu", Kind::kCpu, FilterOperand::kCpu, FilterNumber::kSigned, 4},
    {"COMM", Kind::kComm, FilterOperand::kComm, FilterNumber::kUnsigned, 0},
    {"comm", Kind::kComm, FilterOperand::kComm, FilterNumber::kUnsigned, 0},
    {"STACKTRACE", Kind::kStackTrace, FilterOperand::kZero, FilterNumber::kUnsigned, 0},
    {"stacktrace", Kind::kStackTrace, FilterOperand::kZero, FilterNumber::kUnsigned, 0},
    {"common_type", Kind::kNumber, FilterOperand::kEventId, FilterNumber::kUnsigned, 2},
    {"common_flags", Kind::kNumber, FilterOperand::kZero, FilterNumber::kUnsigned, 1},
    {"common_preempt_count", Kind::kNumber, FilterOperand::kZero, FilterNumber::kUnsigned, 1},
    {"common_pid", Kind::kNumber, FilterOperand::kThread, FilterNumber::kSigned, 4},
};
constexpr NamedField kEntryFields[] = {
    {"__probe_ip", Kind::kNumber, FilterOperand::kIp, FilterNumber::kUnsigned, 8},
};
constexpr NamedField kReturnFields[] = {
    {"__probe_func", Kind::kNumber, FilterOperand::kFunction, FilterNumber::kUnsigned, 8},
    {"__probe_ret_ip", Kind::kNumber, FilterOperand::kIp, FilterNumber::kUnsigned, 8},
};

template <size_t N>
std::optional<FilterField> FindIn(const NamedField (&fields)[N], std::string_view name) {
  for (const NamedField& field : fields) {
    if (field.name != name) continue;
    // The generic fields have no size in the kernel.
    const uint32_t kernel_size = field.kind == Kind::kNumber ? field.size : 0;
    return FilterField{field.kind, field.operand, field.number, field.size, kernel_size, 0, 0};
  }
  return std::nullopt;
}

FilterNumber NumberOf(BaseType base) {
  if (base == BaseType::kF32 || base == BaseType::kF64) return FilterNumber::kFloat;
  return IsSigned(base) ? FilterNumber::kSigned : FilterNumber::kUnsigned;
}

FilterField ArgumentField(const FieldSchema& schema, size_t index) {
  FilterField field;
  field.index = static_cast<uint16_t>(index);
  field.offset = schema.offset;
  field.kernel_size = KernelElementSize(schema.type.base) * schema.type.count;
  if (IsStringLike(schema.type.base)) {
    field.kind = Kind::kString;
    return field;
  }
  field.number = NumberOf(schema.type.base);
  field.size = ElementSize(schema.type.base) * schema.type.count;
  const bool several_floats = field.number == FilterNumber::kFloat && schema.type.count > 1;
  if (several_floats) field.size = 0;
  return field;
}

}  // namespace

std::optional<FilterField> FindFilterField(const EventSchema& schema, std::string_view name) {
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    if (schema.fields[i].name == name) return ArgumentField(schema.fields[i], i);
  }
  const auto own =
      schema.kind == ProbeKind::kReturn ? FindIn(kReturnFields, name) : FindIn(kEntryFields, name);
  return own ? own : FindIn(kSharedFields, name);
}

}  // namespace probed::lang
