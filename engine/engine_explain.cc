#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "engine/arch/x86_64/instruction.h"
#include "engine/arch/x86_64/relocate.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/lang/path_escape.h"
#include "engine/lang/place.h"
#include "engine/probe/boundaries.h"
#include "engine/probe/generated_code.h"
#include "engine/probe/judge.h"
#include "engine/probe/planner.h"
#include "engine/return_explanation.h"
#include "engine/sys/proc.h"
#include "engine/target_namespace.h"

namespace probed::engine {
namespace {

struct Location {
  std::string path;
  std::string symbol;   // empty: a file offset
  uint64_t number = 0;  // the offset, or what is added to the symbol
};

bool ParseNumber(std::string_view text, uint64_t& value) {
  bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

Result<Location> ParseLocation(const std::string& text) {
  Error error{.code = ErrorCode::kInvalidArgument,
              .reason = "BAD_LOCATION",
              .message = fmt::format("'{}' is not a location", text),
              .hint = "write path:0xOFFSET, path:symbol+0xOFFSET or pid:0xADDRESS",
              .metadata = {}};
  size_t colon = lang::PathEnd(text, lang::Dialect::kExtended);
  if (colon == std::string::npos || colon + 1 == text.size()) return error;
  Location location{.path = lang::UnescapePath(std::string_view(text).substr(0, colon)),
                    .symbol = text.substr(colon + 1)};
  if (ParseNumber(location.symbol, location.number)) {
    location.symbol.clear();
    return location;
  }
  size_t plus = lang::AddendStart(location.symbol);
  if (plus == std::string::npos) return location;
  if (!ParseNumber(std::string_view(location.symbol).substr(plus + 1), location.number))
    return error;
  location.symbol.resize(plus);
  return location;
}

// As far as the place of its copy, which will be near, has no say in it.
void ExplainSite(const arch::Instruction& instruction, RemoteAddr address,
                 Explanation& explanation) {
  RemoteAddr near = address + (1 << 20);
  explanation.instruction = instruction.text;
  explanation.bytes = fmt::format("{:02x}", fmt::join(instruction.code(), " "));
  auto copy = arch::BuildCopy(instruction, address.value, near.value);
  probe::Site site(address, {}, instruction);
  if (copy.ok()) site.set_copy(near, *copy);
  explanation.mechanism = site.mechanism();
  explanation.reason = site.reason();
}

// The instruction, its boundary and what a probe there would be.
void ExplainInstruction(const elf::File& file, Explanation& explanation) {
  FileOffset offset{explanation.offset};
  auto address = file.ToLinkAddr(offset);
  auto code = file.Bytes(offset, 15);
  if (!address || code.empty()) {
    explanation.reason = "the offset is not in a loaded segment of the file";
    return;
  }
  probe::Boundaries boundaries;
  explanation.on_boundary = boundaries.At(file, *address) != probe::Boundary::kInside;
  ReturnExplanation of_return = ExplainReturn(file, offset, boundaries);
  explanation.return_probe = std::move(of_return.probe);
  explanation.at_ret = std::move(of_return.at_ret);
  auto instruction = probe::DecodeForProbe(code, address->value);
  if (!instruction.ok()) {
    explanation.reason = instruction.error().message;
    return;
  }
  ExplainSite(*instruction, RemoteAddr{address->value}, explanation);
  if (!explanation.on_boundary) explanation.reason = "the offset is inside an instruction";
}

}  // namespace

// What stands in the process now, between our breakpoints.
Result<Explanation> Engine::State::ExplainAddress(std::optional<TargetId> id, int pid,
                                                  RemoteAddr address) {
  return Run([&]() -> Result<Explanation> {
    Target* target = id && id->pid == pid ? FindTarget(*id) : nullptr;
    if (target == nullptr || target->state == nullptr) return TargetNotFound({.pid = pid});
    PROBED_TRY(auto space, probe::AddressSpace::Read(pid));
    PROBED_TRY(auto plan, probe::Planner(files).PlanAddress(*target->state, space, address));
    Explanation explanation;
    explanation.path = std::to_string(pid);
    explanation.offset = address.value;
    ExplainSite(plan.instruction, address, explanation);
    explanation.reason += "; " + std::string(probe::kNoJumpInGeneratedCode);
    return explanation;
  });
}

Result<Explanation> Engine::Explain(std::optional<TargetId> target, const std::string& text) {
  PROBED_TRY(Location location, ParseLocation(text));
  if (int process = lang::ProcessOf(text); process != 0)
    return state_->ExplainAddress(target, process, RemoteAddr{location.number});
  int pid = target ? target->pid : ::getpid();
  PROBED_TRY(auto space, target ? state_->ReadSpace(*target) : probe::AddressSpace::Read(pid));
  TargetNamespace names(pid, space, state_->files);
  Explanation explanation;
  PROBED_TRY(auto reference, space.Resolve(location.path));
  PROBED_TRY(auto file, state_->files.Open(reference, sys::ProcPath(pid, "root")));
  explanation.path = reference.path;
  explanation.offset = location.number;
  if (!location.symbol.empty()) {
    PROBED_TRY(explanation.offset,
               names.ResolveSymbol(location.path, location.symbol, location.number));
  }
  if (file->Bytes(FileOffset{explanation.offset}, 1).empty()) {
    return Error{
        .code = ErrorCode::kInvalidArgument,
        .reason = "OFFSET_PAST_EOF",
        .message = fmt::format("{:#x} is past the end of {}", explanation.offset, reference.path),
        .hint = probe::HintForOffset(*file, explanation.offset),
        .metadata = {}};
  }
  explanation.symbol = probe::DescribePlace(*file, FileOffset{explanation.offset});
  if (auto address = file->ToLinkAddr(FileOffset{explanation.offset})) {
    auto function = file->FunctionAt(*address);
    if (function) explanation.function_size = function->size;
  }
  ExplainInstruction(*file, explanation);
  std::string remark = names.TakeRemark();
  if (!remark.empty()) explanation.reason += "; " + remark;
  return explanation;
}

}  // namespace probed::engine
