#include "engine/probe/return_instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/lang/fetch_code.h"
#include "engine/probe/function_exits.h"
#include "engine/probe/function_extent.h"
#include "engine/probe/returns_twice.h"
#include "engine/probe/unwinders.h"

namespace probed::probe {
namespace {

Error Refusal(std::string reason, std::string message, std::string hint) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = std::move(hint),
               .metadata = {}};
}

bool ReadsArguments(const lang::Definition& definition) {
  if (definition.program == nullptr) return false;
  return std::ranges::any_of(definition.program->code().ops, [](const lang::FetchOp& op) {
    return op.code == lang::FetchOpcode::kArgument;
  });
}

// A part of a function that the compiler has set aside is entered by jumps.
bool IsSetAside(const elf::File& file, const elf::FunctionBounds& function) {
  if (file.is_go()) return false;
  return IsColdName(function.symbol) ||
         (function.symbol.empty() &&
          file.ReturnAddressAt(function.start) == elf::ReturnAddress::kElsewhere);
}

std::string NameOf(const elf::FunctionBounds& function) {
  return function.symbol.empty() ? fmt::format("the function at {:#x}", function.start.value)
                                 : function.symbol;
}

Error NeverReturns(const elf::File& file, const elf::FunctionBounds& function,
                   const FunctionExits& exits) {
  const std::string others = exits.AllReturn() ? "" : "; it leaves by " + exits.DescribeOthers();
  const bool may_hijack = !file.is_go() && !exits.AllReturn() &&
                          !ReturnsTwice(file, function.start) && !BeginsWalk(file, function.start);
  return Refusal("FUNCTION_NEVER_RETURNS",
                 fmt::format("{} has no ret instruction{}", NameOf(function), others),
                 may_hijack ? "a return probe without --at-ret sees it return; or probe its entry"
                            : "probe its entry instead");
}

}  // namespace

Result<ReturnInstructions> FindReturnInstructions(const elf::File& file,
                                                  const lang::Definition& definition) {
  const FileOffset offset{definition.offset};
  const auto address = file.ToLinkAddr(offset);
  if (!address) {
    return Refusal("FUNCTION_END_UNKNOWN",
                   fmt::format("no function is known at {:#x}", offset.value), "");
  }
  PROBED_TRY(const auto function, ExtentOf(file, *address));
  if (function.start != *address || IsSetAside(file, function)) {
    return Refusal("NOT_FUNCTION_ENTRY",
                   fmt::format("{:#x} is not where {} begins", offset.value, NameOf(function)),
                   "a return probe stands on its function's first instruction");
  }
  if (ReadsArguments(definition)) {
    return Refusal("ARGUMENT_AT_RETURN",
                   "what a function was called with is gone at its ret instructions",
                   "fetch arguments in a probe of its entry");
  }
  PROBED_TRY(auto exits, FindExits(file, function));
  if (exits.returns.empty()) return NeverReturns(file, function, exits);
  return ReturnInstructions{.offsets = std::move(exits.returns), .unseen = exits.DescribeOthers()};
}

}  // namespace probed::probe
