#include <array>

#include <fmt/format.h>

#include "engine/lang/filter.h"

namespace probed::lang {
namespace {

struct ErrorText {
  std::string_view name;
  std::string_view message;
  std::string_view explanation;  // ours
};

// In FilterError's order; the messages are the kernel's (trace_events_filter.c, ERRORS).
constexpr std::array<ErrorText, 19> kErrors = {{
    {"ERRNO", "Error", "a predicate is FIELD OPERATOR VALUE"},
    {"INVALID_OP", "Invalid operator",
     "numbers are compared with == != < <= > >= &, strings with == != ~"},
    {"TOO_MANY_OPEN", "Too many '('", "a '(' has no ')'"},
    {"TOO_MANY_CLOSE", "Too few '('", "a ')' has no '('"},
    {"MISSING_QUOTE", "Missing matching quote", "a string ends with the quote that it begins with"},
    {"MISSING_BRACE_OPEN", "Missing '{'", "a set of CPUs is written CPUS{0,2-5}"},
    {"MISSING_BRACE_CLOSE", "Missing '}'", "a set of CPUs is written CPUS{0,2-5}"},
    {"OPERAND_TOO_LONG", "Operand too long", "a number has at most 23 characters, a string 255"},
    {"EXPECT_STRING", "Expecting string field", "the field is a string: quote the value"},
    {"EXPECT_DIGIT", "Expecting numeric field", "the field is a number: the value takes no quotes"},
    {"ILLEGAL_FIELD_OP", "Illegal operation for field type",
     "numbers of 1, 2, 4 or 8 bytes take == != < <= > >= &, strings == != ~"},
    {"FIELD_NOT_FOUND", "Field not found", ""},
    {"ILLEGAL_INTVAL", "Illegal integer value", "write 12, 0xc or 014; '-' is for signed fields"},
    {"TOO_MANY_PREDS", "Too many terms in predicate expression",
     "predicates are joined with && or ||"},
    {"INVALID_CPULIST", "Invalid cpulist", "write CPUs that the machine has, as in CPUS{0,2-5}"},
    {"INVALID_VALUE", "Invalid value (did you forget quotes)?",
     "a string is quoted, a number begins with a digit or '-'"},
    {"NO_FUNCTION", "Function not found",
     ".function looks for functions of the kernel, and a program has none"},
    {"NO_FILTER", "No filter found", "0 takes a filter away"},
    {"TOO_LONG", "longer than 4095 bytes", "a filter has at most 4095 bytes"},
}};
static_assert(kErrors.size() == static_cast<size_t>(FilterError::kTooLong) + 1);

std::string NameFields(const EventSchema& schema) {
  std::string names;
  for (const FieldSchema& field : schema.fields)
    names += field.name + ", ";
  names += schema.kind == ProbeKind::kReturn ? "__probe_func, __probe_ret_ip" : "__probe_ip";
  return fmt::format("the fields are {}, common_pid, CPU, COMM", names);
}

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

Verdict MakeVerdict(const FilterRefusal& refusal, const EventSchema& schema) {
  const ErrorText& text = kErrors[static_cast<size_t>(refusal.error)];
  Verdict verdict;
  verdict.error_number = refusal.error_number;
  verdict.code = text.name;
  verdict.command = refusal.text;
  const bool is_name = refusal.error == FilterError::kFieldNotFound;
  verdict.explanation = is_name ? NameFields(schema) : std::string(text.explanation);
  if (refusal.error == FilterError::kTooLong) return verdict;
  verdict.message = text.message;
  verdict.caret = static_cast<int>(refusal.position);
  return verdict;
}

}  // namespace probed::lang
