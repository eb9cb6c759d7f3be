#include "engine/kernel/event_schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/kernel/probe_conversion.h"

namespace probed::kernel {
namespace {

using lang::ArgType;
using lang::BaseType;

constexpr uint32_t kLocationBytes = 4;  // of a __data_loc

Error Unsupported(const EventFormat& format, const FormatField& field) {
  return {.code = ErrorCode::kUnimplemented,
          .reason = "UNSUPPORTED_EVENT_FIELD",
          .message =
              fmt::format("{}: cannot read the field {} {}", format.name, field.type, field.name),
          .hint = "",
          .metadata = {{"field", field.name}}};
}

std::optional<BaseType> NumberOf(uint32_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? BaseType::kS8 : BaseType::kU8;
    case 2:
      return is_signed ? BaseType::kS16 : BaseType::kU16;
    case 4:
      return is_signed ? BaseType::kS32 : BaseType::kU32;
    case 8:
      return is_signed ? BaseType::kS64 : BaseType::kU64;
    default:
      return std::nullopt;
  }
}

bool IsChar(const FormatField& field) {
  return field.type == "char" || field.type == "const char";
}

bool IsStructure(const FormatField& field) {
  return field.type.starts_with("struct ") || field.type.starts_with("union ");
}

// The sizes of element types, for arrays that do not say how many there are: the language's types.
uint32_t ElementBytes(const FormatField& field) {
  static constexpr std::pair<std::string_view, uint32_t> kTypes[] = {
      {"u8", 1}, {"s8", 1}, {"u16", 2}, {"s16", 2}, {"u32", 4}, {"s32", 4}, {"u64", 8}, {"s64", 8}};
  for (const auto& [name, size] : kTypes) {
    if (field.type == name) return size;
  }
  uint32_t count = 0;
  const auto [end, error] = std::from_chars(field.dimension.data(),
                                            field.dimension.data() + field.dimension.size(), count);
  if (error != std::errc() || count == 0 || field.size % count != 0) return 0;
  return field.size / count;
}

class Planner {
 public:
  Planner(const std::string& group, const EventFormat& format, const EventOrigin& origin)
      : format_(format), conversions_(format.print_format) {
    plan_.schema.group = group;
    plan_.schema.event = format.name;
    plan_.schema.kind = KindOf();
    is_probe_ = plan_.schema.kind != lang::ProbeKind::kTracepoint ||
                origin.kind == EventOrigin::Kind::kEvent;
  }

  Result<EventPlan> Plan() {
    for (const FormatField& field : format_.fields) {
      if (field.place == FormatField::Place::kHere)
        plan_.least_bytes = std::max(plan_.least_bytes, field.offset + field.size);
      if (TakeAddress(field)) continue;
      PROBED_RETURN_IF_ERROR(field.place == FormatField::Place::kHere ? AddHere(field)
                                                                      : AddLocated(field));
    }
    return std::move(plan_);
  }

 private:
  lang::ProbeKind KindOf() const {
    if (format_.Find("__probe_func") != nullptr) return lang::ProbeKind::kReturn;
    if (format_.Find("__probe_ip") != nullptr) return lang::ProbeKind::kEntry;
    return lang::ProbeKind::kTracepoint;
  }

  bool TakeAddress(const FormatField& field) {
    if (plan_.schema.kind == lang::ProbeKind::kTracepoint || field.size != sizeof(uint64_t))
      return false;
    if (field.name == "__probe_func") {
      plan_.function_offset = field.offset;
    } else if (field.name == "__probe_ip" || field.name == "__probe_ret_ip") {
      plan_.ip_offset = field.offset;
    } else {
      return false;
    }
    return true;
  }

  // Gives the place in the payload.
  uint32_t AddField(const FormatField& field, ArgType type) {
    const uint32_t offset = plan_.schema.fixed_size;
    const uint32_t size = lang::ElementSize(type.base) * type.count;
    plan_.schema.fields.push_back(
        {.name = field.name, .type = type, .offset = offset, .size = size});
    plan_.schema.fixed_size += size;
    return offset;
  }

  void AddData(const FormatField& field, uint32_t from, uint32_t to, bool is_text) {
    plan_.data.push_back({.place = field.place,
                          .from = from,
                          .size = field.size,
                          .to = to,
                          .is_text = is_text,
                          .empty_is_fault = is_probe_});
  }

  void AddNumbers(const FormatField& field, ArgType type) {
    const uint32_t to = AddField(field, type);
    if (!plan_.numbers.empty()) {
      NumberMove& last = plan_.numbers.back();
      if (last.from + last.size == field.offset && last.to + last.size == to) {
        last.size += field.size;
        return;
      }
    }
    plan_.numbers.push_back({.from = field.offset, .to = to, .size = field.size});
  }

  // In a probe event's print fmt stands what the definition's type was.
  BaseType BaseOf(const FormatField& field, BaseType number) {
    if (field.is_pointer()) return BaseType::kX64;
    if (!is_probe_) return number;
    const Conversion conversion = conversions_.Of(field.name);
    if (conversion == Conversion::kSymbol) plan_.symbols.push_back(plan_.schema.fields.size());
    return ToBase(conversion, number);
  }

  Status AddHere(const FormatField& field) {
    if (field.type.find(':') != field.type.npos || field.offset < kCommonBytes)
      return Unsupported(format_, field);
    const bool is_text = field.is_array && IsChar(field);
    const uint32_t element = field.is_array ? ElementBytes(field) : field.size;
    const auto number = NumberOf(element, field.is_signed);
    const uint32_t count = number ? field.size / element : 0;
    if (is_text || IsStructure(field) || count == 0 || count > UINT16_MAX) {
      const uint32_t to = AddField(field, {.base = is_text ? BaseType::kString : BaseType::kBytes});
      AddData(field, field.offset, to, is_text);
    } else {
      AddNumbers(field, {.base = BaseOf(field, *number),
                         .is_array = field.is_array,
                         .count = static_cast<uint16_t>(count)});
    }
    return {};
  }

  Status AddLocated(const FormatField& field) {
    const uint32_t count = field.size / kLocationBytes;
    if (count == 0 || count > UINT16_MAX || field.offset < kCommonBytes)
      return Unsupported(format_, field);
    const bool is_text = IsChar(field);
    const uint32_t to = AddField(field, {.base = is_text ? BaseType::kString : BaseType::kBytes,
                                         .is_array = field.is_array,
                                         .count = static_cast<uint16_t>(count)});
    plan_.least_bytes = std::max(plan_.least_bytes, field.offset + field.size);
    for (uint32_t i = 0; i < count; ++i)
      AddData(field, field.offset + i * kLocationBytes,
              to + i * lang::ElementSize(BaseType::kString), is_text);
    return {};
  }

  const EventFormat& format_;
  const ProbeConversions conversions_;
  bool is_probe_ = false;  // a definition's
  EventPlan plan_;
};

}  // namespace

Result<EventPlan> PlanEvent(const std::string& group, const EventFormat& format,
                            const EventOrigin& origin) {
  return Planner(group, format, origin).Plan();
}

void AddText(lang::EventSchema& schema) {
  const uint32_t size = lang::ElementSize(BaseType::kString);
  schema.fields.push_back({.name = "text",
                           .type = {.base = BaseType::kString},
                           .offset = schema.fixed_size,
                           .size = size});
  schema.fixed_size += size;
  schema.has_text = true;
}

}  // namespace probed::kernel
