#include "engine/lang/expression.h"

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/result.h"
#include "engine/lang/ctype.h"
#include "engine/lang/number.h"

namespace probed::lang {
namespace {

constexpr uint64_t kMaxArgumentNumber = 2048;

constexpr std::array<std::pair<std::string_view, Reg>, 21> kRegisterNames = {{
    {"ax", Reg::kAx},          {"bx", Reg::kBx},   {"cx", Reg::kCx},   {"dx", Reg::kDx},
    {"si", Reg::kSi},          {"di", Reg::kDi},   {"bp", Reg::kBp},   {"sp", Reg::kSp},
    {"r8", Reg::kR8},          {"r9", Reg::kR9},   {"r10", Reg::kR10}, {"r11", Reg::kR11},
    {"r12", Reg::kR12},        {"r13", Reg::kR13}, {"r14", Reg::kR14}, {"r15", Reg::kR15},
    {"ip", Reg::kIp},          {"cs", Reg::kCs},   {"ss", Reg::kSs},   {"flags", Reg::kFlags},
    {"orig_ax", Reg::kOrigAx},
}};

std::optional<uint64_t> VectorNumber(std::string_view name) {
  if (!name.starts_with("xmm")) return std::nullopt;
  const std::string_view digits = name.substr(3);
  if (digits.empty() || digits.size() > 2 || (digits.size() == 2 && digits[0] == '0')) {
    return std::nullopt;
  }
  const auto number = ParseUnsigned(digits, 10);
  if (!IsDigit(digits[0]) || number.error_number != 0 || number.value > 15) return std::nullopt;
  return number.value;
}

FetchExpression Just(SourceKind kind, uint64_t number = 0) {
  FetchExpression expression;
  expression.source.kind = kind;
  expression.source.number = number;
  return expression;
}

FetchExpression JustRegister(Reg reg) {
  FetchExpression expression = Just(SourceKind::kRegister);
  expression.source.reg = reg;
  return expression;
}

// One recursive descent over one argument. Refusals are given the column of the kernel's own book
// keeping, which is not always where the trouble is.
class Parser {
 public:
  Parser(const ExpressionRules& rules, int column) : rules_(rules), column_(column) {}

  Judged<FetchExpression> Parse(std::string_view text);
  int column() const { return column_; }

 private:
  Judged<FetchExpression> ParseVariable(std::string_view name);
  Judged<FetchExpression> ParseStackSlot(std::string_view digits);
  Judged<FetchExpression> ParseArgumentNumber(std::string_view digits);
  Judged<FetchExpression> ParseRegister(std::string_view name);
  Judged<FetchExpression> ParseMemory(std::string_view text);
  Judged<FetchExpression> ParseLoad(std::string_view text);
  Judged<FetchExpression> ParseConstant(std::string_view text);

  Refusal Refuse(RefusalCode code, int error_number = EINVAL, size_t skip = 0) const {
    return {code, error_number, 0, column_ + static_cast<int>(skip), {}, {}, {}};
  }

  ExpressionRules rules_;
  int column_;
};

Judged<FetchExpression> Parser::Parse(std::string_view text) {
  const char first = text.empty() ? '\0' : text[0];
  switch (first) {
    case '$':
      return ParseVariable(text.substr(1));
    case '%':
      return ParseRegister(text.substr(1));
    case '@':
      return ParseMemory(text.substr(1));
    case '+':
    case '-':
      return ParseLoad(text);
    case '\\':
      return ParseConstant(text.substr(1));
    case '(':
      return Refuse(RefusalCode::kNosupBtfarg, EOPNOTSUPP);
    default:
      if (IsAlpha(first) || first == '_') return Refuse(RefusalCode::kNosupBtfarg);
      return Refuse(RefusalCode::kBadFetchArg);
  }
}

Judged<FetchExpression> Parser::ParseVariable(std::string_view name) {
  if (name.starts_with("retval")) {  // whatever follows is ignored
    if (rules_.kind != ProbeKind::kReturn) return Refuse(RefusalCode::kRetvalOnProbe);
    return Just(SourceKind::kReturnValue);
  }
  if (name == "stack") return JustRegister(Reg::kSp);
  if (name.starts_with("stack")) return ParseStackSlot(name.substr(5));
  if (name == "comm" || name == "COMM") return Just(SourceKind::kComm);
  if (name.starts_with("arg")) return ParseArgumentNumber(name.substr(3));
  return Refuse(RefusalCode::kBadVar);
}

Judged<FetchExpression> Parser::ParseStackSlot(std::string_view digits) {
  const auto slot = ParseUnsigned(digits, 10);
  if (!IsDigit(digits[0]) || slot.error_number != 0) return Refuse(RefusalCode::kBadVar);
  return Just(SourceKind::kStackSlot, static_cast<uint32_t>(slot.value));
}

Judged<FetchExpression> Parser::ParseArgumentNumber(std::string_view digits) {
  const auto number = ParseUnsigned(digits, 10);
  if (number.error_number != 0) return Refuse(RefusalCode::kBadVar);
  if (number.value == 0 || number.value > kMaxArgumentNumber) {
    return Refuse(RefusalCode::kBadArgNum);
  }
  if (rules_.dialect == Dialect::kKernel) return Refuse(RefusalCode::kNofentryArgs);
  return Just(SourceKind::kArgument, number.value);
}

Judged<FetchExpression> Parser::ParseRegister(std::string_view name) {
  for (const auto& [known, reg] : kRegisterNames) {
    if (name == known) return JustRegister(reg);
  }
  if (rules_.dialect == Dialect::kExtended) {
    if (const auto number = VectorNumber(name)) return Just(SourceKind::kVector, *number);
  }
  return Refuse(RefusalCode::kBadRegName);
}

Judged<FetchExpression> Parser::ParseMemory(std::string_view text) {
  FetchExpression expression;
  if (!text.empty() && IsDigit(text[0])) {
    const auto address = ParseUnsigned(text);
    if (address.error_number != 0) return Refuse(RefusalCode::kBadMemAddr, address.error_number);
    expression = Just(SourceKind::kImmediate, address.value);
  } else if (text.starts_with('+')) {
    const auto offset = ParseSigned(text.substr(1));
    if (offset.error_number != 0) return Refuse(RefusalCode::kBadFileOffs, offset.error_number);
    expression = Just(SourceKind::kFileOffset, static_cast<uint64_t>(offset.value));
  } else {
    return Refuse(RefusalCode::kSymOnUprobe);
  }
  expression.loads.push_back({});
  return expression;
}

Judged<FetchExpression> Parser::ParseLoad(std::string_view text) {
  const bool user = text.size() > 1 && text[1] == 'u';
  std::string number(text.substr(user ? 2 : 1));
  if (text[0] == '-') number.insert(0, 1, '-');
  const size_t open = number.find('(');
  if (open == std::string::npos) return Refuse(RefusalCode::kDerefNeedBrace);
  const std::string inner = number.substr(open + 1);
  number.resize(open);
  const auto offset = ParseSigned(number);
  if (offset.error_number != 0) return Refuse(RefusalCode::kBadDerefOffs, offset.error_number);
  // The kernel counts neither the 'u' nor the sign of "+-8(", so carets drift to the left.
  column_ += static_cast<int>(open) + 1 + (number.starts_with('-') ? 0 : 1);
  const size_t close = inner.rfind(')');
  if (close == std::string::npos) return Refuse(RefusalCode::kDerefOpenBrace, EINVAL, inner.size());

  const int start = column_;
  PROBED_TRY(FetchExpression expression, Parse(std::string_view(inner).substr(0, close)));
  column_ = start;
  const SourceKind source = expression.source.kind;
  if (expression.loads.empty() && (source == SourceKind::kComm || source == SourceKind::kLiteral)) {
    return Refuse(RefusalCode::kCommCantDeref);
  }
  if (1 + expression.loads.size() == kFetchSlots) return Refuse(RefusalCode::kTooManyOps);
  expression.loads.push_back({static_cast<int32_t>(offset.value), user});
  return expression;
}

Judged<FetchExpression> Parser::ParseConstant(std::string_view text) {
  if (text.starts_with('"')) {
    text.remove_prefix(1);
    if (!text.ends_with('"')) {
      return Refuse(RefusalCode::kImmstrNoClose, EINVAL, 2 + text.size());
    }
    FetchExpression expression = Just(SourceKind::kLiteral);
    expression.source.text = text.substr(0, text.size() - 1);
    return expression;
  }
  const char first = text.empty() ? '\0' : text[0];
  if (IsDigit(first)) {
    const auto number = ParseUnsigned(text);
    if (number.error_number != 0) return Refuse(RefusalCode::kBadImm, number.error_number, 1);
    return Just(SourceKind::kImmediate, number.value);
  }
  if (first != '-' && first != '+') return Refuse(RefusalCode::kBadImm, EINVAL, 1);
  const auto number = ParseSigned(first == '+' ? text.substr(1) : text);
  if (number.error_number != 0) return Refuse(RefusalCode::kBadImm, number.error_number, 1);
  return Just(SourceKind::kImmediate, static_cast<uint64_t>(number.value));
}

}  // namespace

Judged<FetchExpression> ParseExpression(std::string_view text, const ExpressionRules& rules,
                                        int& column) {
  Parser parser(rules, column);
  auto expression = parser.Parse(text);
  column = parser.column();
  return expression;
}

}  // namespace probed::lang
