#pragma once
// The event filter language (kernel Documentation/trace/events, "Event filtering"): judged with the
// kernel's checks, messages and positions, compiled once, run at each hit. Pure; a Filter is
// immutable, so any thread may run it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "engine/lang/definition_set.h"
#include "engine/lang/filter_code.h"
#include "engine/lang/schema.h"

namespace probed::lang {

// The kernel's table of causes, as far as a probe's filter can reach it.
enum class FilterError : uint8_t {
  kUnnamed,  // "Error", position 0
  kInvalidOp,
  kTooManyOpen,
  kTooManyClose,
  kMissingQuote,
  kMissingBraceOpen,
  kMissingBraceClose,
  kOperandTooLong,
  kExpectString,
  kExpectDigit,
  kIllegalFieldOp,
  kFieldNotFound,
  kIllegalIntval,
  kTooManyPreds,
  kInvalidCpulist,
  kInvalidValue,
  kNoFunction,
  kNoFilter,
  kTooLong,  // not looked at: 4096 bytes or more; the old filter stays in force
};
std::string_view NameOf(FilterError error);     // FIELD_NOT_FOUND
std::string_view MessageOf(FilterError error);  // as logged

struct FilterRefusal {
  FilterError error = FilterError::kUnnamed;
  int error_number = 0;  // positive; the kernel's parser leaks numbers of its own here
  std::string text;      // what was judged
  size_t position =
      0;  // as error_log has it: mostly one past the blamed byte, at times past `text`
  // Where the caret goes when text and caret are shown together.
  size_t caret() const { return position < text.size() ? position : text.size(); }
};

struct Filter {
  std::string text;  // as written, without trailing blanks; empty: no filter
  FilterCode code;
};

// Kernel dialect: exactly as the `filter` file, `.function` aside: there are no kernel functions in
// a program. Extended dialect, where the kernel's answer serves nobody: arrays that make no number
// of 1, 2, 4 or 8 bytes, and STACKTRACE, have no comparison and are refused rather than false; `&`
// works on the CPU; a pattern may begin with a digit; a suffix of COMM is searched at its end.
// Fields of types f32 and f64 are compared with decimal numbers.
struct FilterRules {
  Dialect dialect = Dialect::kExtended;
  uint32_t cpus = 1;  // possible CPUs of the machine: CPUS{...} may name no others
};

// `written` is what a write to the file would carry; "0" makes a Filter that passes everything.
tl::expected<Filter, FilterRefusal> CompileFilter(std::string_view written,
                                                  const EventSchema& schema,
                                                  const FilterRules& rules);

// What the `filter` file reads as afterwards.
std::string FilterFile(const Filter& filter);
std::string FilterFile(const FilterRefusal& refusal);

// As error_log shows it; the explanation says what to write instead for an event like `schema`.
Verdict MakeVerdict(const FilterRefusal& refusal, const EventSchema& schema);

// What the predicates look at.
struct FilterHit {
  std::span<const std::byte> payload;
  std::string_view comm;
  uint64_t ip = 0;
  uint64_t function = 0;
  int32_t tid = 0;
  uint32_t cpu = 0;
  uint16_t event_id = 0;
};
bool Passes(const FilterCode& code, const FilterHit& hit);
// Whether `operand` of the hit is looked at: finding out its value may cost more than the filter.
bool Reads(const FilterCode& code, FilterOperand operand);

}  // namespace probed::lang
