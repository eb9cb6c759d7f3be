#pragma once
// One argument token, `[NAME=]FETCH[:TYPE]`, judged completely. Pure.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lang/expression.h"
#include "engine/lang/refusal.h"
#include "engine/lang/type.h"

namespace probed::lang {

// The length of a `bytes` value: a fetcharg with a numeric type of its own.
struct LengthArgument {
  FetchExpression expression;
  ArgType type;
};

struct Argument {
  std::string name;
  std::string text;  // FETCH[:TYPE] as typed
  ArgType type;
  FetchExpression expression;
  std::optional<LengthArgument> length;  // kBytes only
};

// What the line before this argument came to.
struct ArgumentContext {
  ExpressionRules rules;
  const std::vector<Argument>& earlier;
  uint32_t kernel_size = 0;  // bytes of the earlier arguments in the kernel's record
};

// Refusals carry a column only; the caller knows the token's index.
Judged<Argument> ParseArgument(std::string_view token, const ArgumentContext& context);

// What an argument takes of the kernel's 3072 bytes.
uint32_t KernelSize(const ArgType& type);

}  // namespace probed::lang
