#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "elf/demangle.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/sys/proc.h"

namespace probed::engine {
namespace {

using FilePointer = std::shared_ptr<const elf::File>;

std::string RootOf(int pid) {
  return sys::ProcPath(pid, "root");
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

// `module`: where the file is mapped, for run-time addresses; may be null.
void AppendSymbols(const SymbolQuery& query, const elf::File& file, const std::string& path,
                   const elf::Module* module, std::vector<SymbolInfo>& list) {
  uint64_t bias = module != nullptr ? LoadBias(*module, file) : 0;
  for (const auto& symbol : file.SearchFunctions(query.pattern, query.limit - list.size())) {
    list.push_back(Describe(symbol, file, path));
    if (module != nullptr) list.back().address = symbol.address.value + bias;
  }
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
  int pid = query.target ? query.target->pid : ::getpid();
  PROBED_TRY(auto space,
             query.target ? state_->ReadSpace(*query.target) : probe::AddressSpace::Read(pid));
  std::vector<SymbolInfo> list;
  if (!query.path.empty()) {
    PROBED_TRY(auto reference, space.Resolve(query.path));
    PROBED_TRY(FilePointer file, state_->files.Open(reference, RootOf(pid)));
    const auto* module = query.target && reference.mapped
                             ? space.map().FindFile(reference.device, reference.inode)
                             : nullptr;
    AppendSymbols(query, *file, reference.path, module, list);
    return list;
  }
  for (const auto& module : space.map().modules()) {
    if (!query.target || module.inode == 0 || list.size() >= query.limit) continue;
    auto file = state_->files.Open(space.Refer(module), RootOf(pid));
    if (file.ok()) AppendSymbols(query, **file, module.path, &module, list);
  }
  return list;
}

}  // namespace probed::engine
