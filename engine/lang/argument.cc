#include "engine/lang/argument.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/result.h"
#include "engine/lang/ctype.h"
#include "engine/lang/type_spec.h"

namespace probed::lang {
namespace {

constexpr size_t kMaxNameLength = 32;
constexpr size_t kKernelMaxTextLength = 63;
constexpr size_t kExtendedMaxTextLength = 255;  // as later kernels
constexpr uint32_t kMaxRecordSize = 3072;

constexpr std::array<std::string_view, 8> kReservedNames = {
    "common_type", "common_flags", "common_preempt_count", "common_pid",
    "common_tgid", "__probe_ip",   "__probe_ret_ip",       "__probe_func",
};

Refusal Refuse(RefusalCode code, int column, int error_number = EINVAL) {
  return {code, error_number, 0, column, {}, {}, {}};
}

bool IsTaken(std::string_view name, const std::vector<Argument>& earlier) {
  return std::find(kReservedNames.begin(), kReservedNames.end(), name) != kReservedNames.end() ||
         std::any_of(earlier.begin(), earlier.end(),
                     [&](const Argument& argument) { return argument.name == name; });
}

// The name, and the rest of the token as `body`.
Judged<std::string> ParseName(std::string_view token, const std::vector<Argument>& earlier,
                              std::string_view& body) {
  std::string name;
  const size_t equals = token.find('=');
  if (equals == std::string_view::npos) {
    name = fmt::format("arg{}", earlier.size() + 1);
    body = token;
  } else {
    if (equals > kMaxNameLength) return Refuse(RefusalCode::kArgNameTooLong, 0);
    if (equals == 0) return Refuse(RefusalCode::kNoArgName, 0);
    name = token.substr(0, equals);
    body = token.substr(equals + 1);
  }
  if (!IsIdentifier(name)) return Refuse(RefusalCode::kBadArgName, 0);
  if (IsTaken(name, earlier)) return Refuse(RefusalCode::kUsedArgName, 0);
  return name;
}

Judged<void> CheckLength(std::string_view body, Dialect dialect, int column) {
  const size_t limit = dialect == Dialect::kKernel ? kKernelMaxTextLength : kExtendedMaxTextLength;
  if (body.size() > limit) return Refuse(RefusalCode::kArgTooLong, column, E2BIG);
  if (body.empty()) return Refuse(RefusalCode::kNoArgBody, column);
  return {};
}

Judged<LengthArgument> ParseLength(std::string_view text, const ExpressionRules& rules,
                                   int column) {
  PROBED_TRY(const TypeSpec spec, ParseTypeSpec(text, rules.dialect, column));
  const bool is_integer = !IsStringLike(spec.type.base) && spec.type.base != BaseType::kF32 &&
                          spec.type.base != BaseType::kF64 && !spec.type.is_array;
  if (!is_integer) return Refuse(RefusalCode::kBadType, column + spec.type_column());
  LengthArgument length;
  PROBED_TRY(length.expression, ParseExpression(spec.expression, rules, column));
  PROBED_TRY(length.type, FitType(spec, length.expression, column));
  if (!spec.is_explicit) length.type.base = BaseType::kS64;
  return length;
}

}  // namespace

uint32_t KernelSize(const ArgType& type) {
  return KernelElementSize(type.base) * type.count;
}

Judged<Argument> ParseArgument(std::string_view token, const ArgumentContext& context) {
  Argument argument;
  std::string_view body;
  PROBED_TRY(argument.name, ParseName(token, context.earlier, body));
  argument.text = body;
  const int start = static_cast<int>(token.size() - body.size());
  const Dialect dialect = context.rules.dialect;
  if (auto length = CheckLength(body, dialect, start); !length.ok()) return length.error();
  PROBED_TRY(const TypeSpec spec, ParseTypeSpec(body, dialect, start));
  int column = start;
  PROBED_TRY(argument.expression, ParseExpression(spec.expression, context.rules, column));
  if (context.kernel_size + KernelSize(spec.type) > kMaxRecordSize) {
    return Refuse(RefusalCode::kEventTooBig, column, E2BIG);
  }
  PROBED_TRY(argument.type, FitType(spec, argument.expression, column));
  if (spec.length) {
    PROBED_TRY(argument.length,
               ParseLength(*spec.length, context.rules, start + spec.length_column));
  }
  return argument;
}

}  // namespace probed::lang
