#include "engine/lang/filter_predicate.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <utility>

#include "engine/lang/ctype.h"
#include "engine/lang/filter_cpus.h"
#include "engine/lang/filter_pattern.h"
#include "engine/lang/number.h"

namespace probed::lang {
namespace {

using Kind = FilterField::Kind;

// kernel/trace/trace_events_filter.c: parse_pred(), MAX_FILTER_STR_VAL, KSYM_NAME_LEN.
constexpr size_t kMaxNumber = 23;
constexpr size_t kMaxText = 255;
constexpr size_t kMaxFunction = 511;
constexpr int32_t kFullComm = 15;

constexpr std::pair<std::string_view, FilterOperator> kOperators[] = {
    {"~", FilterOperator::kGlob},    {"!=", FilterOperator::kNotEqual},
    {"==", FilterOperator::kEqual},  {"<=", FilterOperator::kLessEqual},
    {"<", FilterOperator::kLess},    {">=", FilterOperator::kGreaterEqual},
    {">", FilterOperator::kGreater}, {"&", FilterOperator::kAnd},
};

FilterTest TestOf(FilterOperator op) {
  switch (op) {
    case FilterOperator::kLess:
      return FilterTest::kLess;
    case FilterOperator::kLessEqual:
      return FilterTest::kLessEqual;
    case FilterOperator::kGreater:
      return FilterTest::kGreater;
    case FilterOperator::kGreaterEqual:
      return FilterTest::kGreaterEqual;
    case FilterOperator::kAnd:
      return FilterTest::kAnyBit;
    case FilterOperator::kEqual:
    case FilterOperator::kNotEqual:
    case FilterOperator::kGlob:
      break;
  }
  return FilterTest::kEqual;
}

// The number as a field of `size` bytes has it, extended to 64 bits again.
uint64_t CutTo(uint64_t value, uint32_t size, FilterNumber number) {
  if (number == FilterNumber::kFloat || size == 0 || size >= sizeof(value)) return value;
  const unsigned unused = 64 - 8 * size;
  value <<= unused;
  if (number == FilterNumber::kSigned) {
    return static_cast<uint64_t>(static_cast<int64_t>(value) >> unused);
  }
  return value >> unused;
}

}  // namespace

// The kernel's positions are one past the byte.
bool PredicateParser::Refuse(FilterError error, size_t index) {
  refusal_ = {error, EINVAL, {}, index + 1};
  return false;
}

bool PredicateParser::Take(std::string_view word) {
  const bool taken = text_.substr(at_).starts_with(word);
  if (taken) at_ += word.size();
  return taken;
}

void PredicateParser::SkipSpace() {
  while (IsSpace(Peek()))
    ++at_;
}

std::string_view PredicateParser::TakeAlnum() {
  const size_t start = at_;
  while (IsAlpha(Peek()) || IsDigit(Peek()))
    ++at_;
  return text_.substr(start, at_ - start);
}

bool PredicateParser::Parse() {
  return ReadField() && ReadOperator() && ReadValue();
}

bool PredicateParser::ReadField() {
  const size_t start = at_;
  while (!TakeAlnum().empty() || Take("_")) {
  }
  if (at_ == start) {
    refusal_ = {FilterError::kUnnamed, EPERM, {}, 0};
    return false;
  }
  const auto found = FindFilterField(schema_, text_.substr(start, at_ - start));
  if (!found) return Refuse(FilterError::kFieldNotFound, at_);
  field_ = *found;
  Take(".ustring");  // a string of ours has been read already
  function_ = Take(".function");
  SkipSpace();
  return true;
}

bool PredicateParser::ReadOperator() {
  for (const auto& [word, op] : kOperators) {
    if (!Take(word)) continue;
    operator_ = op;
    SkipSpace();
    return true;
  }
  return Refuse(FilterError::kInvalidOp, at_);
}

bool PredicateParser::ReadValue() {
  op_.operand = field_.operand;
  op_.number = field_.number;
  op_.size = static_cast<uint8_t>(field_.size);
  op_.field = field_.index;
  op_.offset = field_.offset;
  if (function_) return ReadFunction();
  if (Take("CPUS")) return ReadCpus();
  const char first = Peek();
  if (first == '\'' || first == '"') return ReadText(first);
  if (IsDigit(first) || first == '-') return ReadNumber();
  return Refuse(FilterError::kInvalidValue, at_);
}

// Names a function of the kernel, of which no program has any: what is well-formed is not found.
bool PredicateParser::ReadFunction() {
  if (field_.kernel_size != sizeof(uint64_t)) return Refuse(FilterError::kIllegalFieldOp, at_);
  if (operator_ != FilterOperator::kEqual && operator_ != FilterOperator::kNotEqual) {
    return Refuse(FilterError::kInvalidOp, at_);
  }
  if (IsDigit(Peek())) {
    const std::string_view number = TakeAlnum();
    if (number.size() > kMaxNumber) return Refuse(FilterError::kOperandTooLong, at_);
    if (ParseUnsigned(number).error_number != 0) return Refuse(FilterError::kInvalidValue, at_);
  } else {
    const size_t start = at_;
    while (at_ < text_.size() && !IsSpace(text_[at_]))
      ++at_;
    if (at_ - start > kMaxFunction) return Refuse(FilterError::kOperandTooLong, at_);
  }
  return Refuse(FilterError::kNoFunction, at_);
}

bool PredicateParser::ReadCpus() {
  const size_t start = at_ - std::string_view("CPUS").size();
  const bool has_set = field_.kind == Kind::kNumber || field_.kind == Kind::kCpu;
  const bool sets_op = operator_ == FilterOperator::kEqual ||
                       operator_ == FilterOperator::kNotEqual || operator_ == FilterOperator::kAnd;
  if (!has_set || !sets_op) return Refuse(FilterError::kIllegalFieldOp, start);
  if (!Take("{")) return Refuse(FilterError::kMissingBraceOpen, at_ + 1);
  const size_t end = text_.find('}', at_);
  if (end == std::string_view::npos) return Refuse(FilterError::kMissingBraceClose, text_.size());
  const std::string_view list = text_.substr(at_, end - at_);
  auto set = list.empty() ? std::nullopt : ParseCpuList(list, rules_.cpus);
  if (!set) return Refuse(FilterError::kInvalidCpulist, end);
  at_ = end + 1;
  return CompareWithSet(*std::move(set));
}

// A number may equal a set of one; it never equals a larger set, or an empty one.
bool PredicateParser::CompareWithSet(FilterSet set) {
  if (!TakesNumbers(at_)) return false;
  int members = 0;
  uint64_t first = 0;
  for (size_t i = 0; i < set.size(); ++i) {
    if (members == 0 && set[i] != 0) {
      first = 64 * i + static_cast<uint64_t>(std::countr_zero(set[i]));
    }
    members += std::popcount(set[i]);
  }
  if (members == 1) {
    if (operator_ == FilterOperator::kAnd) operator_ = FilterOperator::kEqual;
    Compare(first);
  } else if (field_.comparable()) {
    CompareWithMany(std::move(set));
  }
  return true;
}

void PredicateParser::CompareWithMany(FilterSet set) {
  const bool kernel = rules_.dialect == Dialect::kKernel;
  const bool unequal = operator_ == FilterOperator::kNotEqual;
  inverted_ = unequal && !kernel;
  if (operator_ != FilterOperator::kAnd && !(unequal && kernel)) return;
  if (kernel) {
    // filter_pred_*_cpumask() takes the low 32 bits, and what is no CPU is not even unequal.
    if (unequal) set = *ParseCpuList("all", rules_.cpus);
    op_.size = static_cast<uint8_t>(std::min<uint32_t>(op_.size, sizeof(uint32_t)));
  }
  op_.test = FilterTest::kInSet;
  op_.index = static_cast<uint16_t>(code_.sets.size());
  code_.sets.push_back(std::move(set));
}

bool PredicateParser::ReadText(char quote) {
  const bool texts_op = operator_ == FilterOperator::kEqual ||
                        operator_ == FilterOperator::kNotEqual ||
                        operator_ == FilterOperator::kGlob;
  if (!texts_op) return Refuse(FilterError::kIllegalFieldOp, at_);
  if (!field_.is_text()) return Refuse(FilterError::kExpectDigit, at_);
  const size_t start = at_ + 1;
  const size_t end = text_.find(quote, start);
  if (end == std::string_view::npos) return Refuse(FilterError::kMissingQuote, text_.size());
  if (end - start > kMaxText) return Refuse(FilterError::kOperandTooLong, end);
  at_ = end + 1;

  const std::string_view text = text_.substr(start, end - start);
  const bool kernel = rules_.dialect == Dialect::kKernel;
  PatternSyntax syntax{operator_ == FilterOperator::kNotEqual, {}};
  syntax.pattern.text = text;
  if (operator_ == FilterOperator::kGlob)
    syntax = ParsePattern(text, /*digits_are_literal=*/kernel);
  // The kernel looks for the suffix at the end of the 16 bytes that hold the name.
  const bool suffix = syntax.pattern.kind == FilterPattern::Kind::kEnd;
  if (kernel && suffix && field_.kind == Kind::kComm && !syntax.pattern.text.empty()) {
    syntax.pattern.min_length = kFullComm;
  }
  inverted_ = syntax.negated;
  op_.test = FilterTest::kText;
  op_.index = static_cast<uint16_t>(code_.patterns.size());
  code_.patterns.push_back(std::move(syntax.pattern));
  return true;
}

bool PredicateParser::ReadNumber() {
  if (field_.is_text()) return Refuse(FilterError::kExpectString, at_);
  if (operator_ == FilterOperator::kGlob) return Refuse(FilterError::kIllegalFieldOp, at_);
  const size_t start = at_;
  if (!TakesNumbers(start)) return false;
  const bool decimal = field_.number == FilterNumber::kFloat;
  Take("-");
  TakeAlnum();
  if (decimal && Take(".")) TakeAlnum();
  if (decimal && IsAlpha(text_[at_ - 1]) && (Take("-") || Take("+"))) TakeAlnum();
  const std::string_view number = text_.substr(start, at_ - start);
  if (number.size() > kMaxNumber) return Refuse(FilterError::kOperandTooLong, at_);
  const bool read = decimal ? ReadDecimal(number) : ReadInteger(number);
  return read || Refuse(FilterError::kIllegalIntval, start);
}

bool PredicateParser::ReadInteger(std::string_view digits) {
  if (field_.number == FilterNumber::kSigned) {
    const auto number = ParseSigned(digits);
    Compare(static_cast<uint64_t>(number.value));
    return number.error_number == 0;
  }
  const auto number = ParseUnsigned(digits);
  Compare(number.value);
  return number.error_number == 0;
}

bool PredicateParser::ReadDecimal(std::string_view digits) {
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  Compare(std::bit_cast<uint64_t>(value));
  return error == std::errc() && end == digits.data() + digits.size();
}

// Where the kernel has no comparison function, and takes the predicate for false.
bool PredicateParser::TakesNumbers(size_t index) {
  if (rules_.dialect == Dialect::kKernel) return true;
  const bool bits_of_float =
      field_.number == FilterNumber::kFloat && operator_ == FilterOperator::kAnd;
  const bool takes = field_.comparable() && !bits_of_float;
  return takes || Refuse(FilterError::kIllegalFieldOp, index);
}

void PredicateParser::Compare(uint64_t value) {
  const bool cpu_bits = field_.kind == Kind::kCpu && operator_ == FilterOperator::kAnd;
  if (!field_.comparable() || (cpu_bits && rules_.dialect == Dialect::kKernel)) return;
  op_.test = TestOf(operator_);
  inverted_ = operator_ == FilterOperator::kNotEqual;
  op_.value = CutTo(value, field_.size, field_.number);
}

}  // namespace probed::lang
