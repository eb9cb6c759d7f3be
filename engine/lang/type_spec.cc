#include "engine/lang/type_spec.h"

#include <array>
#include <cerrno>
#include <utility>

#include "base/result.h"
#include "engine/lang/number.h"

namespace probed::lang {
namespace {

constexpr uint64_t kMaxArrayCount = 64;

constexpr std::array<std::pair<std::string_view, BaseType>, 15> kTypeNames = {{
    {"u8", BaseType::kU8},
    {"u16", BaseType::kU16},
    {"u32", BaseType::kU32},
    {"u64", BaseType::kU64},
    {"s8", BaseType::kS8},
    {"s16", BaseType::kS16},
    {"s32", BaseType::kS32},
    {"s64", BaseType::kS64},
    {"x8", BaseType::kX8},
    {"x16", BaseType::kX16},
    {"x32", BaseType::kX32},
    {"x64", BaseType::kX64},
    {"char", BaseType::kChar},
    {"string", BaseType::kString},
    {"ustring", BaseType::kUstring},
}};

Refusal Refuse(RefusalCode code, int column, int error_number = EINVAL) {
  return {code, error_number, 0, column, {}, {}, {}};
}

std::optional<BaseType> Container(std::string_view bitfield) {
  const size_t slash = bitfield.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto bits = ParseUnsigned(bitfield.substr(slash + 1));
  if (bits.error_number != 0) return std::nullopt;
  switch (bits.value) {
    case 8:
      return BaseType::kU8;
    case 16:
      return BaseType::kU16;
    case 32:
      return BaseType::kU32;
    case 64:
      return BaseType::kU64;
    default:
      return std::nullopt;
  }
}

std::optional<BaseType> BaseTypeOf(std::string_view text, Dialect dialect) {
  if (dialect == Dialect::kExtended) {
    if (text == "f32") return BaseType::kF32;
    if (text == "f64") return BaseType::kF64;
  }
  if (text.starts_with('b')) return Container(text);
  for (const auto& [name, type] : kTypeNames) {
    if (text == name) return type;
  }
  return std::nullopt;
}

// Takes `[count]` off the end of spec.text. `column` is where spec.text starts in the token.
Judged<void> ParseArray(TypeSpec& spec, int column) {
  const size_t open = spec.text.find('[');
  if (open == std::string_view::npos) return {};
  const std::string_view rest = spec.text.substr(open + 1);
  column += static_cast<int>(open) + 1;
  const size_t close = rest.find(']');
  if (close == std::string_view::npos) {
    return Refuse(RefusalCode::kArrayNoClose, column + static_cast<int>(rest.size()));
  }
  if (close + 1 != rest.size()) {
    return Refuse(RefusalCode::kBadArraySuffix, column + static_cast<int>(close) + 1);
  }
  const auto count = ParseUnsigned(rest.substr(0, close));
  if (count.error_number != 0 || count.value == 0 || count.value > UINT32_MAX) {
    return Refuse(RefusalCode::kBadArrayNum, column);
  }
  if (count.value > kMaxArrayCount) return Refuse(RefusalCode::kArrayTooBig, column);
  spec.type.is_array = true;
  spec.type.count = static_cast<uint16_t>(count.value);
  spec.text = spec.text.substr(0, open);
  return {};
}

bool IsStringConstant(std::string_view expression) {
  return expression == "$comm" || expression == "$COMM" || expression.starts_with("\\\"");
}

// bytes(<fetcharg>[:<type>]), the extended dialect's length-delimited type.
bool TakeBytes(TypeSpec& spec, Dialect dialect) {
  constexpr std::string_view kOpen = "bytes(";
  if (dialect != Dialect::kExtended || !spec.text.starts_with(kOpen)) return false;
  if (!spec.text.ends_with(')')) return false;
  spec.length = spec.text.substr(kOpen.size(), spec.text.size() - kOpen.size() - 1);
  spec.length_column = spec.type_column() + static_cast<int>(kOpen.size());
  spec.type.base = BaseType::kBytes;
  return true;
}

// Width and offset, read leniently; the container was judged with the type's name.
bool ParseBitfield(std::string_view text, ArgType& type) {
  const ScannedNumber width = ScanUnsigned(text.substr(1));
  std::string_view rest = text.substr(1 + width.length);
  if (width.value == 0 || !rest.starts_with('@')) return false;
  rest.remove_prefix(1);
  const ScannedNumber offset = ScanUnsigned(rest);
  if (offset.length == 0 || !rest.substr(offset.length).starts_with('/')) return false;
  type.bit_width = static_cast<uint8_t>(width.value);
  type.bit_offset = static_cast<uint8_t>(offset.value);
  return width.value + offset.value <= 8 * ElementSize(type.base);  // the sum may wrap, as theirs
}

// Slots of the kernel's program used so far, and whether the last is a load.
struct Slots {
  size_t used;
  bool ends_in_load;
};

Judged<void> FitString(const TypeSpec& spec, const FetchExpression& expression, Slots& slots,
                       int column) {
  const SourceKind source = expression.source.kind;
  const bool is_constant =
      !slots.ends_in_load && (source == SourceKind::kImmediate || source == SourceKind::kComm ||
                              source == SourceKind::kLiteral);
  if (!slots.ends_in_load && !is_constant) {
    return Refuse(RefusalCode::kBadString, column + spec.type_column());
  }
  // A constant or a pointer in an array is a value of its own, so the store needs another slot.
  if (is_constant || spec.type.is_array) {
    if (slots.used == kFetchSlots) return Refuse(RefusalCode::kTooManyOps, column);
    ++slots.used;
  }
  return {};
}

}  // namespace

Judged<TypeSpec> ParseTypeSpec(std::string_view body, Dialect dialect, int column) {
  TypeSpec spec;
  const size_t colon = body.find(':');
  spec.expression = body.substr(0, colon);
  spec.is_explicit = colon != std::string_view::npos;
  if (spec.is_explicit) spec.text = body.substr(colon + 1);
  const int type_column = column + spec.type_column();
  if (IsStringConstant(spec.expression)) {
    if (auto array = ParseArray(spec, type_column); !array.ok()) return array.error();
    if (spec.type.is_array || (spec.is_explicit && spec.text != "string")) {
      return Refuse(RefusalCode::kNeedStringType, type_column);
    }
    spec.type.base = BaseType::kString;
    return spec;
  }
  if (TakeBytes(spec, dialect)) return spec;
  if (auto array = ParseArray(spec, type_column); !array.ok()) return array.error();
  if (!spec.is_explicit) return spec;
  const auto base = BaseTypeOf(spec.text, dialect);
  if (!base) return Refuse(RefusalCode::kBadType, type_column);
  spec.type.base = *base;
  return spec;
}

Judged<ArgType> FitType(const TypeSpec& spec, const FetchExpression& expression, int column) {
  ArgType type = spec.type;
  const int type_column = column + spec.type_column();
  Slots slots{1 + expression.loads.size(), !expression.loads.empty()};
  const bool user_load = slots.ends_in_load && expression.loads.back().user;
  if (IsStringLike(type.base)) {
    if (auto fit = FitString(spec, expression, slots, column); !fit.ok()) return fit.error();
  } else if (!slots.ends_in_load) {
    ++slots.used;  // storing a bare value; cannot be the last slot
  }
  if (spec.is_explicit && spec.text.starts_with('b') && type.base != BaseType::kBytes) {
    if (!ParseBitfield(spec.text, type) || slots.used++ == kFetchSlots) {
      return Refuse(RefusalCode::kBadBitfield, type_column);
    }
  }
  if (!type.is_array) return type;
  if (!IsStringLike(type.base) && (!slots.ends_in_load || user_load)) {
    return Refuse(RefusalCode::kBadString, type_column);
  }
  if (slots.used == kFetchSlots) return Refuse(RefusalCode::kTooManyOps, column, E2BIG);
  return type;
}

}  // namespace probed::lang
