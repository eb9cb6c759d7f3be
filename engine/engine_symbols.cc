#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <span>
#include <utility>

#include "elf/demangle.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/arch/x86_64/relocate.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/probe/boundaries.h"
#include "engine/probe/judge.h"
#include "engine/target_namespace.h"

namespace probed::engine {
namespace {

using FilePointer = std::shared_ptr<const elf::File>;

std::string RootOf(int pid) {
  return fmt::format("/proc/{}/root", pid);
}

// Difference between run-time and link-time addresses of a module.
uint64_t LoadBias(const elf::Module& module, const elf::File& file) {
  for (const auto& mapping : module.mappings) {
    auto address = file.ToLinkAddr(mapping.offset);
    if (mapping.executable && address) return mapping.start.value - address->value;
  }
  return 0;
}

ModuleInfo Describe(const elf::Module& module, const elf::File& file) {
  return ModuleInfo{.path = module.path,
                    .build_id = file.identity().build_id,
                    .load_bias = LoadBias(module, file),
                    .start = module.mappings.front().start.value,
                    .end = module.mappings.back().end.value,
                    .deleted = module.deleted};
}

SymbolInfo Describe(const elf::Symbol& symbol, const elf::File& file, const std::string& module) {
  SymbolInfo info{.name = symbol.name,
                  .demangled = elf::Demangle(symbol.name),
                  .version = symbol.version,
                  .module = module,
                  .offset = 0,
                  .address = 0,
                  .size = symbol.size,
                  .ifunc = symbol.ifunc,
                  .aliases = {}};
  if (auto offset = file.ToOffset(symbol.address)) info.offset = offset->value;
  for (const auto& alias : file.AliasesAt(symbol.address)) {
    if (alias.name != symbol.name) info.aliases.push_back(alias.name);
  }
  return info;
}

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
              .hint = "write path:0xOFFSET or path:symbol+0xOFFSET",
              .metadata = {}};
  size_t colon = text.rfind(':');
  while (colon != std::string::npos && colon > 0 && text[colon - 1] == ':') {
    colon = colon < 2 ? std::string::npos : text.rfind(':', colon - 2);  // a::b in a C++ name
  }
  if (colon == std::string::npos || colon + 1 == text.size()) return error;
  Location location{.path = text.substr(0, colon), .symbol = text.substr(colon + 1)};
  if (ParseNumber(location.symbol, location.number)) {
    location.symbol.clear();
    return location;
  }
  size_t plus = location.symbol.rfind('+');
  if (plus == std::string::npos) return location;
  if (!ParseNumber(std::string_view(location.symbol).substr(plus + 1), location.number))
    return error;
  location.symbol.resize(plus);
  return location;
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
  auto instruction = probe::DecodeForProbe(code, address->value);
  if (!instruction.ok()) {
    explanation.reason = instruction.error().message;
    return;
  }
  explanation.instruction = instruction->text;
  explanation.bytes = fmt::format("{:02x}", fmt::join(instruction->code(), " "));
  auto copy = arch::BuildCopy(*instruction, address->value, address->value + (1 << 20));
  probe::Site site(RemoteAddr{address->value}, {}, *instruction);
  if (copy.ok()) site.set_copy(RemoteAddr{address->value + (1 << 20)}, *copy);
  explanation.mechanism = site.mechanism();
  explanation.reason = site.reason();
  if (!explanation.on_boundary) explanation.reason = "the offset is inside an instruction";
}

}  // namespace

Result<std::vector<ModuleInfo>> Engine::ListModules(TargetId target) {
  PROBED_TRY(auto space, state_->ReadSpace(target));
  std::vector<ModuleInfo> list;
  for (const auto& module : space.map().modules()) {
    if (module.inode == 0) continue;
    auto file = state_->files.Open(space.Refer(module), RootOf(target.pid));
    if (file.ok()) list.push_back(Describe(module, **file));
  }
  return list;
}

Result<probe::AddressSpace> Engine::State::ReadSpace(TargetId target) {
  bool alive = Run([&] {
    Target* found = FindTarget(target);
    return found != nullptr && found->state != nullptr;
  });
  if (!alive) return TargetNotFound(target);
  return probe::AddressSpace::Read(target.pid);
}

Result<std::vector<SymbolInfo>> Engine::SearchSymbols(const SymbolQuery& query) {
  std::vector<SymbolInfo> list;
  int pid = query.target ? query.target->pid : ::getpid();
  if (!query.path.empty()) {
    PROBED_TRY(auto space,
               query.target ? state_->ReadSpace(*query.target) : probe::AddressSpace::Read(pid));
    PROBED_TRY(auto reference, space.Resolve(query.path));
    PROBED_TRY(FilePointer file, state_->files.Open(reference, RootOf(pid)));
    for (const auto& symbol : file->SearchFunctions(query.pattern, query.limit)) {
      list.push_back(Describe(symbol, *file, reference.path));
    }
  }
  if (!query.target) return list;
  PROBED_TRY(auto space, state_->ReadSpace(*query.target));
  if (!query.path.empty()) {
    PROBED_TRY(auto reference, space.Resolve(query.path));
    const auto* module = space.map().FindFile(reference.device, reference.inode);
    PROBED_TRY(FilePointer file, state_->files.Open(reference, RootOf(pid)));
    if (module == nullptr) return list;
    uint64_t bias = LoadBias(*module, *file);
    for (auto& info : list) {
      auto address = file->ToLinkAddr(FileOffset{info.offset});
      if (address) info.address = address->value + bias;
    }
    return list;
  }
  for (const auto& module : space.map().modules()) {
    if (module.inode == 0 || list.size() >= query.limit) continue;
    auto file = state_->files.Open(space.Refer(module), RootOf(pid));
    if (!file.ok()) continue;
    uint64_t bias = LoadBias(module, **file);
    for (const auto& symbol : (*file)->SearchFunctions(query.pattern, query.limit - list.size())) {
      list.push_back(Describe(symbol, **file, module.path));
      list.back().address = symbol.address.value + bias;
    }
  }
  return list;
}

Result<Explanation> Engine::Explain(std::optional<TargetId> target, const std::string& text) {
  PROBED_TRY(Location location, ParseLocation(text));
  int pid = target ? target->pid : ::getpid();
  PROBED_TRY(auto space, target ? state_->ReadSpace(*target) : probe::AddressSpace::Read(pid));
  TargetNamespace names(pid, space, state_->files);
  Explanation explanation;
  PROBED_TRY(auto reference, space.Resolve(location.path));
  PROBED_TRY(FilePointer file, state_->files.Open(reference, RootOf(pid)));
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
        .hint = "",
        .metadata = {}};
  }
  explanation.symbol = probe::DescribePlace(*file, FileOffset{explanation.offset});
  if (auto address = file->ToLinkAddr(FileOffset{explanation.offset})) {
    auto function = file->FunctionAt(*address);
    if (function) explanation.function_size = function->size;
  }
  ExplainInstruction(*file, explanation);
  return explanation;
}

}  // namespace probed::engine
