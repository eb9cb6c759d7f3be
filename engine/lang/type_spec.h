#pragma once
// The text after an argument's ':' and how it fits what is fetched. Two steps, because the kernel
// judges the type's name before the expression and its fit after it. Pure.

#include <optional>
#include <string_view>

#include "engine/lang/expression.h"
#include "engine/lang/refusal.h"
#include "engine/lang/type.h"

namespace probed::lang {

struct TypeSpec {
  std::string_view expression;  // the body up to the ':'
  std::string_view text;        // the type without its array part
  bool is_explicit = false;
  ArgType type;  // bit_width and bit_offset are set by FitType
  // Extended: the fetcharg inside bytes(...), with its own optional type, and its column in `body`.
  std::optional<std::string_view> length;
  int length_column = 0;

  // Where the type stands, relative to the body.
  int type_column() const { return is_explicit ? static_cast<int>(expression.size()) + 1 : 0; }
};

// Splits `body`, which starts at `column` of its token.
Judged<TypeSpec> ParseTypeSpec(std::string_view body, Dialect dialect, int column);

// Whether `expression` can be stored as `spec`; completes the bitfield. `column` is the drifted one
// that ParseExpression left.
Judged<ArgType> FitType(const TypeSpec& spec, const FetchExpression& expression, int column);

}  // namespace probed::lang
