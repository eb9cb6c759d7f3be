#include "engine/probe/module_watcher.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <optional>
#include <string>

#include "engine/probe/generated_code.h"
#include "engine/probe/shadow_stack.h"
#include "engine/probe/transaction.h"
#include "engine/probe/unwinders.h"

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

std::string RootOf(const ProcessState& state) {
  return fmt::format("/proc/{}/root", state.id.pid);
}

}  // namespace

bool ModuleWatcher::InstallHook(tracee::Stopped& stopped, ProcessState& state, RemoteAddr address,
                                Hook hook) {
  Site* existing = state.sites.Find(address);
  if (existing != nullptr && existing->HasHook(hook)) return true;
  auto plan = planner_.PlanHook(state, address, hook);
  if (!plan.ok()) return false;
  return Transaction(state, {std::move(plan).value()}).InstallAtOnce(stopped).ok();
}

void ModuleWatcher::HookOffset(tracee::Stopped& stopped, ProcessState& state,
                               const elf::Module& module, FileOffset offset, Hook hook) {
  for (RemoteAddr address : AddressSpace::Executable(module, offset)) {
    InstallHook(stopped, state, address, hook);
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

// A look at each module once: the symbol table of a large program takes a while.
void ModuleWatcher::HookUnwinders(tracee::Stopped& stopped, ProcessState& state,
                                  const AddressSpace& space) {
  const auto& probes = state.group->probes;
  bool hijacks =
      std::any_of(probes.begin(), probes.end(), [](const auto& probe) { return probe->hijacks(); });
  if (!hijacks) return;
  for (const auto& module : space.map().modules()) {
    if (!HasCode(module)) continue;
    if (!state.unwinders_seen.emplace(module.device, module.inode).second) continue;
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

void ModuleWatcher::ForgetUnmapped(ProcessState& state, const AddressSpace& space) {
  std::vector<Site*> unmapped = state.sites.Sorted();
  std::erase_if(unmapped, [&](const Site* site) {
    if (site->is_generated()) return true;
    const elf::Mapping* mapping = space.map().At(site->address());
    return mapping != nullptr && mapping->executable &&
           (site->place().inode == 0 || mapping->inode == site->place().inode);
  });
  if (!unmapped.empty()) state.CountDetours();
  for (Site* site : unmapped) {
    site->ForgetPatch();
    auto optimization = site->optimization();
    state.journal.Remove(JournalRecord::kSite, site->address());
    state.sites.Erase(site->address());
    // What it has hijacked may still return: of a function that has gone on in another (a tail
    // call).
    if (optimization && optimization->returns.empty()) state.Retire(std::move(optimization));
  }
}

void ModuleWatcher::ArmPending(tracee::Stopped& stopped, ProcessState& state,
                               const AddressSpace& space) {
  for (const auto& probe : state.group->probes) {
    if (probe->definition->process != 0) continue;  // other code may live at its address now
    std::vector<PlannedSite> plans;
    Status planned = planner_.Plan(state, space, probe, plans);
    if (planned.ok() && plans.empty()) continue;
    if (planned.ok()) planned = Transaction(state, std::move(plans)).InstallAtOnce(stopped);
    probe->obstacle = planned.ok() ? "" : planned.error().ToString();
  }
}

void ModuleWatcher::FindReferenceCounters(tracee::Stopped& stopped, ProcessState& state,
                                          const AddressSpace& space) {
  for (Site* site : state.sites.Sorted()) {
    const lang::Definition* definition = site->MissingReferenceCounter();
    const elf::Module* module = definition != nullptr ? space.Find(*definition) : nullptr;
    if (module == nullptr) continue;
    auto counter = AddressSpace::Writable(*module, FileOffset{definition->ref_ctr_offset});
    if (counter) (void)state.journal.Put(RecordOf(*site, counter));
    if (counter) site->SetReferenceCounter(stopped, *counter);
  }
}

void ModuleWatcher::Refresh(tracee::Stopped& stopped, ProcessState& state) {
  if (state.leaving) return;
  auto space = AddressSpace::Read(state.id.pid);
  if (!space.ok()) return;  // it is exiting
  ForgetUnmapped(state, *space);
  LookAtGeneratedCode(state, stopped.tid(), &*space);
  ArmPending(stopped, state, *space);
  FindReferenceCounters(stopped, state, *space);
  HookUnwinders(stopped, state, *space);
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
                  InstallHook(stopped, state, RemoteAddr{entry}, Hook::kProgramEntry);
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
