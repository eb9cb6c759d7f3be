#include "engine/probe/module_watcher.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <optional>
#include <string>

#include "engine/probe/generated_code.h"
#include "engine/probe/map_calls.h"
#include "engine/probe/shadow_stack.h"
#include "engine/probe/transaction.h"
#include "engine/probe/unmapped.h"
#include "engine/probe/unwinders.h"
#include "engine/sys/proc.h"

namespace probed::probe {
namespace {

// Whether a system call that has just returned may have changed what is mapped executable.
bool ChangesCode(const user_regs_struct& regs) {
  switch (static_cast<long>(regs.orig_rax)) {
    case SYS_mmap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
      return (regs.rdx & PROT_EXEC) != 0;
    case SYS_munmap:
    case SYS_mremap:
      return true;
    default:
      return false;
  }
}

// Data files and devices that are mapped are none of our business.
bool HasCode(const elf::Module& module) {
  return module.inode != 0 && std::any_of(module.mappings.begin(), module.mappings.end(),
                                          [](const auto& mapping) { return mapping.executable; });
}

bool IsAwaited(const AddressSpace& space, const Probe& probe) {
  return probe.enabled && probe.definition->process == 0 &&
         space.Find(*probe.definition) == nullptr;
}

// Where a file was replaced the new one has another inode, and its code may be anywhere.
std::string ReplacementOf(const AddressSpace& space, const Probe& probe) {
  const std::string& path = probe.definition->path;
  const elf::Module* module = space.map().FindPath(path);
  if (module == nullptr || space.Find(*probe.definition) != nullptr) return "";
  return fmt::format("another file is at {} now: define the probe again", path);
}

bool NeedsWatch(const ProcessState& state, const AddressSpace& space) {
  const auto& probes = state.group->probes;
  if (state.leaving || state.process.awaiting_exec() || probes.empty()) return false;
  return state.maps_code_itself ||
         std::any_of(probes.begin(), probes.end(),
                     [&](const auto& probe) { return IsAwaited(space, *probe); });
}

// True for what was not there when it was asked last: a look at each is enough, as the symbol table
// of a large program takes a while.
bool IsNew(SeenCode& seen, const elf::Module& module) {
  bool is_new = false;
  for (const elf::Mapping& mapping : module.mappings) {
    if (!mapping.executable) continue;
    is_new |= seen.emplace(mapping.inode, mapping.start).second;
  }
  return is_new;
}

void ForgetUnmapped(SeenCode& code, const AddressSpace& space) {
  std::erase_if(code, [&](const auto& seen) {
    const elf::Mapping* mapping = space.map().At(seen.second);
    return mapping == nullptr || mapping->start != seen.second || mapping->inode != seen.first;
  });
}

std::string RootOf(const ProcessState& state) {
  return sys::ProcPath(state.id.pid, "root");
}

}  // namespace

bool ModuleWatcher::InstallHook(tracee::Stopped& stopped, ProcessState& state, RemoteAddr address,
                                Hook hook, SitePlace place) {
  Site* existing = state.sites.Find(address);
  if (existing != nullptr && existing->HasHook(hook)) return true;
  auto plan = planner_.PlanHook(state, address, hook, std::move(place));
  if (!plan.ok()) return false;
  return Transaction(state, {std::move(plan).value()}).InstallAtOnce(stopped).ok();
}

void ModuleWatcher::HookOffset(tracee::Stopped& stopped, ProcessState& state,
                               const elf::Module& module, FileOffset offset, Hook hook) {
  for (RemoteAddr address : AddressSpace::Executable(module, offset)) {
    InstallHook(stopped, state, address, hook,
                {.module = module.path,
                 .device = module.device,
                 .inode = module.inode,
                 .offset = offset,
                 .symbol = ""});
  }
}

void ModuleWatcher::HookLinker(tracee::Stopped& stopped, ProcessState& state,
                               const AddressSpace& space) {
  uint64_t base = ReadAuxiliaryValue(state.id.pid, AT_BASE);
  const elf::Mapping* linker = base != 0 ? space.map().At(RemoteAddr{base}) : nullptr;
  if (linker == nullptr) return;
  const elf::Module* module = space.map().FindFile(linker->device, linker->inode);
  if (module == nullptr) return;
  auto file = files_.Open(space.Refer(*module), RootOf(state));
  if (!file.ok()) return;
  auto symbol = (*file)->FindFunction("_dl_debug_state");
  auto offset = symbol.ok() ? (*file)->ToOffset(symbol->address) : std::nullopt;
  if (offset) HookOffset(stopped, state, *module, *offset, Hook::kModuleList);
}

void ModuleWatcher::HookUnwinders(tracee::Stopped& stopped, ProcessState& state,
                                  const AddressSpace& space) {
  const auto& probes = state.group->probes;
  bool hijacks =
      std::any_of(probes.begin(), probes.end(), [](const auto& probe) { return probe->hijacks(); });
  if (!hijacks) return;
  ForgetUnmapped(state.unwinders_seen, space);
  for (const auto& module : space.map().modules()) {
    if (!HasCode(module) || !IsNew(state.unwinders_seen, module)) continue;
    auto file = files_.Open(space.Refer(module), RootOf(state));
    if (!file.ok()) continue;
    for (const auto& point : FindUnwindPoints(**file)) {
      HookOffset(stopped, state, module, point.offset, point.hook);
    }
  }
}

void ModuleWatcher::HookUnwinders(tracee::Stopped& stopped, ProcessState& state) {
  auto space = AddressSpace::Read(state.id.pid);
  if (space.ok()) HookUnwinders(stopped, state, *space);
}

void ModuleWatcher::ArmPending(tracee::Stopped& stopped, ProcessState& state,
                               const AddressSpace& space) {
  for (const auto& probe : state.group->probes) {
    if (probe->definition->process != 0) continue;  // other code may live at its address now
    std::vector<PlannedSite> plans;
    Status planned = planner_.Plan(state, space, probe, plans);
    if (planned.ok() && !plans.empty())
      planned = Transaction(state, std::move(plans)).InstallAtOnce(stopped);
    probe->obstacle = planned.ok() ? ReplacementOf(space, *probe) : planned.error().ToString();
  }
}

void ModuleWatcher::FindReferenceCounters(tracee::Stopped& stopped, ProcessState& state,
                                          const AddressSpace& space) {
  for (Site* site : state.sites.Sorted()) {
    const lang::Definition* definition = site->MissingReferenceCounter();
    const elf::Module* module = definition != nullptr ? space.Find(*definition) : nullptr;
    if (module == nullptr) continue;
    auto counter = planner_.FindReferenceCounter(state, space, *module, *definition,
                                                 site->address(), site->place().offset);
    if (counter) (void)state.journal.Put(RecordOf(*site, counter));
    if (counter) site->SetReferenceCounter(stopped, *counter);
  }
}

void ModuleWatcher::RemoveHook(tracee::Stopped& stopped, ProcessState& state, Hook hook) {
  tracee::CodeMemory code(stopped);
  for (Site* site : state.sites.Sorted()) {
    if (!site->HasHook(hook)) continue;
    site->RemoveHook(hook);
    (void)SyncSite(code, *site);
  }
}

// In the C library, or in a program that has it inside.
void ModuleWatcher::WatchMaps(tracee::Stopped& stopped, ProcessState& state,
                              const AddressSpace& space) {
  ForgetUnmapped(state.map_calls_seen, space);
  const bool is_static = ReadAuxiliaryValue(state.id.pid, AT_BASE) == 0;
  for (const auto& module : space.map().modules()) {
    const bool may_call = IsCLibrary(module.path) || (is_static && module.path == state.executable);
    if (!HasCode(module) || !may_call || !IsNew(state.map_calls_seen, module)) continue;
    auto file = files_.Open(space.Refer(module), RootOf(state));
    if (!file.ok()) continue;
    for (const auto& call : FindMapCalls(**file))
      HookOffset(stopped, state, module, call.behind, call.hook);
  }
}

void ModuleWatcher::SyncWatch(tracee::Stopped& stopped, ProcessState& state,
                              const AddressSpace& space) {
  // Until its first own instruction every system call is looked at anyway.
  if (state.loading) return;
  const bool needs = NeedsWatch(state, space);
  const bool did = std::exchange(state.watches_maps, needs);
  if (needs) return WatchMaps(stopped, state, space);
  if (!did) return;
  state.map_calls_seen.clear();
  for (Hook hook : {Hook::kMapped, Hook::kProtected, Hook::kUnmapped})
    RemoveHook(stopped, state, hook);
}

void ModuleWatcher::SyncWatch(tracee::Stopped& stopped, ProcessState& state) {
  auto space = AddressSpace::Read(state.id.pid);
  if (space.ok()) SyncWatch(stopped, state, *space);
}

bool ModuleWatcher::IsWatchOutdated(const ProcessState& state) {
  auto space = AddressSpace::Read(state.id.pid);
  return !state.loading && space.ok() && NeedsWatch(state, *space) != state.watches_maps;
}

bool ModuleWatcher::OnMapped(tracee::Stopped& stopped, ProcessState& state) {
  if (!HasMappedCode(stopped.regs())) return false;
  const size_t before = state.sites.size();
  const bool did = std::exchange(state.maps_code_itself, true);
  Refresh(stopped, state);
  state.maps_code_itself = did || state.sites.size() > before;
  return true;
}

bool ModuleWatcher::OnProtected(tracee::Stopped& stopped, ProcessState& state) {
  if ((stopped.regs().rdx & PROT_EXEC) == 0) return false;
  auto space = AddressSpace::Read(state.id.pid);
  if (!space.ok() || !HasMadeCode(stopped.regs(), space->map())) return false;
  Refresh(stopped, state);
  return true;
}

bool ModuleWatcher::OnUnmapped(tracee::Stopped& stopped, ProcessState& state) {
  const user_regs_struct& regs = stopped.regs();
  if (!HasUnmappedSites(regs, state.sites)) return false;
  if (HasMoved(regs)) {
    RestoreMoved(stopped, state, RemoteAddr{regs.rdi}, RemoteAddr{regs.rdi + regs.rsi},
                 RemoteAddr{regs.rax});
  }
  Refresh(stopped, state);
  return true;
}

void ModuleWatcher::Refresh(tracee::Stopped& stopped, ProcessState& state) {
  auto space = AddressSpace::Read(state.id.pid);
  if (!space.ok()) return;  // it is exiting
  // What comes to the same place later has none of our bytes.
  if (state.leaving) return ForgetUnmapped(state, *space);
  ForgetUnmapped(state, *space);
  LookAtGeneratedCode(state, stopped.tid(), &*space);
  ArmPending(stopped, state, *space);
  FindReferenceCounters(stopped, state, *space);
  HookUnwinders(stopped, state, *space);
  SyncWatch(stopped, state, *space);
}

void ModuleWatcher::OnAttach(tracee::Stopped& stopped, ProcessState& state) {
  auto space = AddressSpace::Read(state.id.pid);
  if (space.ok()) HookLinker(stopped, state, *space);
  Refresh(stopped, state);
}

void ModuleWatcher::OnExec(tracee::Stopped& stopped, ProcessState& state) {
  if (state.leaving) return;
  uint64_t entry = ReadAuxiliaryValue(state.id.pid, AT_ENTRY);
  bool has_linker = ReadAuxiliaryValue(state.id.pid, AT_BASE) != 0;
  state.loading = has_linker && entry != 0 &&
                  InstallHook(stopped, state, RemoteAddr{entry}, Hook::kProgramEntry, {});
  OnAttach(stopped, state);
}

void ModuleWatcher::OnSyscallExit(tracee::Stopped& stopped, ProcessState& state) {
  WithdrawFromShadowStack(stopped, state);
  if (ChangesCode(stopped.regs())) Refresh(stopped, state);
}

void ModuleWatcher::OnProgramEntry(tracee::Stopped& stopped, ProcessState& state, RemoteAddr at) {
  state.loading = false;
  Refresh(stopped, state);
  Site* site = state.sites.Find(at);
  if (site == nullptr) return;
  site->RemoveHook(Hook::kProgramEntry);
  tracee::CodeMemory code(stopped);
  (void)SyncSite(code, *site);
}

}  // namespace probed::probe
