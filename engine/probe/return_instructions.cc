#include "engine/probe/return_instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/arch/x86_64/instruction.h"
#include "engine/lang/fetch_code.h"

namespace probed::probe {
namespace {

constexpr uint64_t kLongestFunction = 1 << 20;

Error Refusal(std::string reason, std::string message, std::string hint) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = std::move(hint),
               .metadata = {}};
}

bool ReadsArguments(const lang::Definition& definition) {
  return std::ranges::any_of(definition.program->code().ops, [](const lang::FetchOp& op) {
    return op.code == lang::FetchOpcode::kArgument;
  });
}

Result<std::vector<uint64_t>> FindIn(const elf::File& file, const elf::FunctionBounds& function,
                                     FileOffset offset) {
  std::vector<uint64_t> found;
  const auto code = file.Bytes(offset, function.size);
  for (size_t at = 0; at < code.size();) {
    PROBED_TRY(const auto instruction,
               arch::Decode(std::span(code).subspan(at), function.start.value + at));
    if (instruction.is_return) found.push_back(offset.value + at);
    at += instruction.length;
  }
  return found;
}

}  // namespace

Result<std::vector<uint64_t>> FindReturnInstructions(const elf::File& file,
                                                     const lang::Definition& definition) {
  if (definition.kind != lang::ProbeKind::kReturn || !file.is_go()) return std::vector<uint64_t>();
  const FileOffset offset{definition.offset};
  const auto address = file.ToLinkAddr(offset);
  const auto function = address ? file.FunctionAt(*address) : std::nullopt;
  if (!function || function->size == 0 || function->size > kLongestFunction) {
    return Refusal("FUNCTION_END_UNKNOWN", "where this function of a Go program ends is not known",
                   "put an entry probe on its ret instructions");
  }
  if (function->start != *address) {
    return Refusal("NOT_FUNCTION_ENTRY",
                   fmt::format("{:#x} is not where {} begins", offset.value, function->symbol),
                   "a return probe of a Go program stands on its function's first instruction");
  }
  if (ReadsArguments(definition)) {
    return Refusal("ARGUMENT_AT_RETURN",
                   "what a function of a Go program was called with is gone when it returns",
                   "fetch arguments in a probe of its entry");
  }
  PROBED_TRY(auto found, FindIn(file, *function, offset));
  if (found.empty()) {
    return Refusal("FUNCTION_NEVER_RETURNS",
                   fmt::format("{} has no ret instruction", function->symbol),
                   "probe its entry instead");
  }
  return found;
}

}  // namespace probed::probe
