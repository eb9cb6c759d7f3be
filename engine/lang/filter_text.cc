#include <array>

#include <fmt/format.h>

#include "engine/lang/filter.h"

namespace probed::lang {
namespace {

struct ErrorText {
  std::string_view name;
  std::string_view message;
};

// In FilterError's order; the messages are the kernel's (trace_events_filter.c, ERRORS).
constexpr std::array<ErrorText, 19> kErrors = {{
    {"ERRNO", "Error"},
    {"INVALID_OP", "Invalid operator"},
    {"TOO_MANY_OPEN", "Too many '('"},
    {"TOO_MANY_CLOSE", "Too few '('"},
    {"MISSING_QUOTE", "Missing matching quote"},
    {"MISSING_BRACE_OPEN", "Missing '{'"},
    {"MISSING_BRACE_CLOSE", "Missing '}'"},
    {"OPERAND_TOO_LONG", "Operand too long"},
    {"EXPECT_STRING", "Expecting string field"},
    {"EXPECT_DIGIT", "Expecting numeric field"},
    {"ILLEGAL_FIELD_OP", "Illegal operation for field type"},
    {"FIELD_NOT_FOUND", "Field not found"},
    {"ILLEGAL_INTVAL", "Illegal integer value"},
    {"TOO_MANY_PREDS", "Too many terms in predicate expression"},
    {"INVALID_CPULIST", "Invalid cpulist"},
    {"INVALID_VALUE", "Invalid value (did you forget quotes)?"},
    {"NO_FUNCTION", "Function not found"},
    {"NO_FILTER", "No filter found"},
    {"TOO_LONG", "longer than 4095 bytes"},
}};
static_assert(kErrors.size() == static_cast<size_t>(FilterError::kTooLong) + 1);

}  // namespace

std::string_view NameOf(FilterError error) {
  return kErrors[static_cast<size_t>(error)].name;
}

std::string_view MessageOf(FilterError error) {
  return kErrors[static_cast<size_t>(error)].message;
}

std::string FilterFile(const Filter& filter) {
  return filter.text.empty() ? "none\n" : filter.text + "\n";
}

std::string FilterFile(const FilterRefusal& refusal) {
  if (refusal.error == FilterError::kUnnamed) return refusal.text + "\nError: (0)\n\n";
  return fmt::format("{}\n{:>{}}\nparse_error: {}\n\n", refusal.text, '^', refusal.caret() + 1,
                     MessageOf(refusal.error));
}

}  // namespace probed::lang
