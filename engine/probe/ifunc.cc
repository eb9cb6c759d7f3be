#include "engine/probe/ifunc.h"

#include <fmt/format.h>

#include <span>

#include "elf/load_bias.h"
#include "engine/probe/function_slots.h"
#include "engine/sys/proc.h"
#include "engine/sys/process_memory.h"

namespace probed::probe {
namespace {

bool IsCodeOf(const elf::Module& module, RemoteAddr address) {
  for (const auto& mapping : module.mappings) {
    if (mapping.executable && address >= mapping.start && address < mapping.end) return true;
  }
  return false;
}

}  // namespace

std::shared_ptr<const elf::File> IfuncResolver::Open(const elf::Module& module) {
  auto file = files_.Open(space_.Refer(module), sys::ProcPath(pid_, "root"));
  return file.ok() ? *file : nullptr;
}

// A slot that is not filled yet holds no code of `definer`: the file's own word, or the way to the
// linker's lazy binding.
std::optional<LinkAddr> IfuncResolver::FromSlots(const elf::Module& holder, const elf::File& file,
                                                 const std::vector<LinkAddr>& slots,
                                                 const elf::Module& definer, LinkAddr resolver) {
  if (slots.empty()) return {};
  auto memory = sys::ProcessMemory::Open(pid_);
  auto bias = elf::LoadBias(file, holder);
  auto definer_file = Open(definer);
  if (!memory.ok() || !bias.ok() || !definer_file) return {};
  auto definer_bias = elf::LoadBias(*definer_file, definer);
  if (!definer_bias.ok()) return {};
  for (LinkAddr slot : slots) {
    RemoteAddr chosen;
    auto word = std::as_writable_bytes(std::span(&chosen.value, 1));
    if (memory->ReadSome(elf::ToRemote(slot, *bias), word) != word.size()) continue;
    LinkAddr address = elf::ToLink(chosen, *definer_bias);
    if (IsCodeOf(definer, chosen) && address != resolver) return address;
  }
  return {};
}

std::optional<LinkAddr> IfuncResolver::Chosen(const elf::Module& definer,
                                              const elf::Symbol& ifunc) {
  if (auto file = Open(definer)) {
    auto slots = SlotsOfResolver(*file, ifunc.address);
    if (auto own = FromSlots(definer, *file, slots, definer, ifunc.address)) return own;
  }
  // A name of several versions says too little about somebody else's slot.
  if (!ifunc.default_version) return {};
  for (const auto& module : space_.map().modules()) {
    auto file = module.inode != 0 ? Open(module) : nullptr;
    if (!file) continue;
    auto slots = SlotsOfImport(*file, ifunc.name);
    if (auto chosen = FromSlots(module, *file, slots, definer, ifunc.address)) return chosen;
  }
  return {};
}

}  // namespace probed::probe
