#pragma once
// What one argument fetches, before it is fitted to a type: a source and the loads on top of it.
// Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lang/definition_set.h"
#include "engine/lang/refusal.h"
#include "engine/lang/registers.h"
#include "engine/lang/schema.h"

namespace probed::lang {

enum class SourceKind : uint8_t {
  kRegister,
  kStackSlot,
  kReturnValue,
  kComm,
  kImmediate,
  kFileOffset,
  kLiteral,
  kArgument,  // extended: $argN
  kVector,    // extended: %xmmN
};

struct Source {
  SourceKind kind = SourceKind::kImmediate;
  Reg reg = Reg::kAx;
  uint64_t number = 0;  // slot, constant, file offset, argument (from 1) or vector register
  std::string text;     // kLiteral
};

// value = *(value + offset). The kernel keeps 32 bits of the offset.
struct Load {
  int32_t offset = 0;
  bool user = false;  // +u: only shows in what types are allowed
};

struct FetchExpression {
  Source source;
  std::vector<Load> loads;  // innermost first
};

// The kernel's fetch programs have 16 slots, the last one reserved: one for the source, one for
// each load, one more for arrays, bitfields and strings of constants.
inline constexpr size_t kFetchSlots = 15;

struct ExpressionRules {
  ProbeKind kind = ProbeKind::kEntry;
  Dialect dialect = Dialect::kKernel;
};

// Parses `text`. `column` is where it starts in its token; it comes back moved by the outermost
// load's prefix, and later complaints about the argument inherit that drift (so the kernel does).
Judged<FetchExpression> ParseExpression(std::string_view text, const ExpressionRules& rules,
                                        int& column);

}  // namespace probed::lang
