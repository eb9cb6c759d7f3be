#include "engine/probe/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/probe/return_instructions.h"
#include "engine/probe/returns_twice.h"
#include "engine/probe/site.h"
#include "engine/probe/unwinders.h"

namespace probed::probe {
namespace {

constexpr size_t kLongestInstruction = 15;

Error Refusal(std::string reason, std::string message, std::string hint) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = std::move(hint),
               .metadata = {}};
}

// glibc's way out of a context: what makecontext(3) has its function return to. Its unwind table
// does not say so.
bool IsReturnedTo(const elf::File& file, LinkAddr address) {
  return std::ranges::any_of(file.AliasesAt(address),
                             [](const auto& alias) { return alias.name == "__start_context"; });
}

// What to try where a return address must stay as it is.
std::string HintOr(const elf::File& file, const lang::Definition& definition, std::string other) {
  if (!FindReturnInstructions(file, definition).ok()) return other;
  return "--at-ret leaves the return address alone and can stand there";
}

// Functions whose return address must stay as it is, and places where it cannot be found.
Status JudgeReturn(const elf::File& file, const lang::Definition& definition, LinkAddr address,
                   bool force) {
  if (!force && (file.ReturnAddressAt(address) == elf::ReturnAddress::kElsewhere ||
                 IsReturnedTo(file, address))) {
    return Refusal(
        "NOT_FUNCTION_ENTRY",
        fmt::format("{:#x} is not where a function begins: its return address is not on "
                    "top of the stack there",
                    address.value),
        HintOr(file, definition, "a return probe stands on its function's first instruction"));
  }
  if (BeginsWalk(file, address)) {
    return Refusal("LOOKS_AT_RETURN_ADDRESS",
                   "the unwinder begins here, with the return address of this very function",
                   HintOr(file, definition, "probe its entry instead"));
  }
  auto twice = ReturnsTwice(file, address);
  if (!twice) return {};
  return Refusal("RETURNS_TWICE",
                 fmt::format("{} returns more than once from one call: to a return address that it "
                             "or a child sharing its stack has kept",
                             *twice),
                 HintOr(file, definition, "probe its entry instead"));
}

}  // namespace

std::string HintForOffset(const elf::File& file, uint64_t offset) {
  auto meant = file.ToOffset(LinkAddr{offset});
  if (meant && *meant != FileOffset{offset})
    return fmt::format("the number is a file offset; if you meant the address {:#x}, write {:#x}",
                       offset, meant->value);
  return fmt::format("'probectl symbols --path {}' lists its functions with their offsets",
                     file.name());
}

Result<arch::Instruction> DecodeForProbe(std::span<const uint8_t> code, uint64_t address) {
  if (!code.empty() && code[0] == kBreakpointByte) {
    return Refusal("TRAP_INSTRUCTION", "there is a trap instruction (int3) of the program itself",
                   "probe the instruction before or after it");
  }
  PROBED_TRY(auto instruction, arch::Decode(code, address));
  if (instruction.execution == arch::Execution::kRefused) {
    return Refusal(
        "INSTRUCTION_REFUSED",
        fmt::format("no probe can stand on '{}': {}", instruction.text, instruction.refusal),
        "probe a neighbouring instruction");
  }
  return instruction;
}

bool StandsAtRet(const elf::File& file, const lang::Definition& definition,
                 const ProbeOptions& options) {
  return definition.kind == lang::ProbeKind::kReturn && (options.at_ret || file.is_go());
}

Status JudgePlace(const elf::File& file, const lang::Definition& definition,
                  const ProbeOptions& options, Boundaries& boundaries) {
  FileOffset offset{definition.offset};
  auto code = CodeAt(file, offset);
  if (code.empty()) {
    return Refusal("OFFSET_PAST_EOF",
                   fmt::format("{:#x} is past the end of {}", offset.value, definition.path),
                   HintForOffset(file, offset.value));
  }
  auto address = file.ToLinkAddr(offset);
  if (!address || !file.IsExecutable(offset)) {
    return Refusal(
        "NOT_EXECUTABLE",
        fmt::format("{:#x} of {} is not in an executable segment", offset.value, definition.path),
        HintForOffset(file, offset.value));
  }
  if (definition.kind == lang::ProbeKind::kReturn && !StandsAtRet(file, definition, options)) {
    PROBED_RETURN_IF_ERROR(JudgeReturn(file, definition, *address, options.force));
  }
  if (!options.force && boundaries.At(file, *address) == Boundary::kInside) {
    return Refusal(
        "NOT_INSTRUCTION_BOUNDARY",
        fmt::format("{:#x} of {} is inside an instruction", offset.value, definition.path),
        "use an offset that a disassembler shows, or force it");
  }
  auto instruction = DecodeForProbe(code, address->value);
  if (!instruction.ok()) return std::move(instruction).error();
  return {};
}

std::vector<uint8_t> CodeAt(const elf::File& file, FileOffset offset) {
  return file.Bytes(offset, kLongestInstruction);
}

// A file may be written over in its place; its name and number stay.
Status JudgeSame(const elf::File& file, const Probe& probe) {
  if (!probe.file || probe.file.get() == &file) return {};
  const std::string& build_id = file.identity().build_id;
  bool is_same =
      build_id == probe.file->identity().build_id &&
      (!build_id.empty() || CodeAt(file, FileOffset{probe.definition->offset}) == probe.code);
  if (is_same) return {};
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "FILE_CHANGED",
               .message = probe.definition->path + " was changed since the probe was defined",
               .hint = "define it again: its function may be in another place now",
               .metadata = {{"build_id", build_id}}};
}

std::string DescribePlace(const elf::File& file, FileOffset offset) {
  auto address = file.ToLinkAddr(offset);
  if (!address) return "";
  auto function = file.FunctionAt(*address);
  if (!function || function->symbol.empty()) return "";
  return fmt::format("{}+{:#x}", function->symbol, *address - function->start);
}

}  // namespace probed::probe
