#include "engine/probe/unmapped.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "engine/probe/planner.h"

namespace probed::probe {
namespace {

bool Holds(const ProcessState& state, RemoteAddr address, std::span<const uint8_t> expected) {
  std::vector<uint8_t> present(expected.size());
  return state.process.memory().Read(address, std::as_writable_bytes(std::span(present))).ok() &&
         std::equal(expected.begin(), expected.end(), present.begin());
}

bool HoldsPatch(const ProcessState& state, const Site& site) {
  if (!site.optimization()) return Holds(state, site.address(), {&kBreakpointByte, 1});
  const auto& patches = site.optimization()->patches;
  return std::all_of(patches.begin(), patches.end(), [&](const CodePatch& patch) {
    return Holds(state, patch.address, patch.patched);
  });
}

// Programs copy their own code into other memory, for the sake of huge pages (iodlr, node
// --use-largepages), and with the code what we have written there. Padding looks like a breakpoint,
// too, so what follows must be the program's.
bool IsCopied(const ProcessState& state, const Site& site) {
  const OwnCode& code = site.code();
  bool all_padding = std::all_of(code.begin() + std::min<size_t>(code.size(), 1), code.end(),
                                 [](uint8_t byte) { return byte == kBreakpointByte; });
  return site.armed() && !all_padding && HoldsPatch(state, site) &&
         ReadOwnCode(state, site.address()) == code;
}

bool IsMapped(const ProcessState& state, const AddressSpace& space, const Site& site) {
  if (site.is_generated()) return true;  // generated_code.h
  const elf::Mapping* mapping = space.map().At(site.address());
  if (mapping == nullptr || !mapping->executable) return false;
  if (site.place().inode == 0 || mapping->inode == site.place().inode) return true;
  return IsCopied(state, site);
}

}  // namespace

void ForgetUnmapped(ProcessState& state, const AddressSpace& space) {
  std::vector<Site*> unmapped = state.sites.Sorted();
  std::erase_if(unmapped, [&](const Site* site) { return IsMapped(state, space, *site); });
  if (!unmapped.empty()) state.CountDetours();
  for (Site* site : unmapped)
    state.Forget(*site);
}

void RestoreMoved(tracee::Stopped& stopped, ProcessState& state, RemoteAddr start, RemoteAddr end,
                  RemoteAddr to) {
  auto restore = [&](RemoteAddr address, std::span<const uint8_t> ours,
                     std::span<const uint8_t> original) {
    const RemoteAddr now = to + (address - start);
    if (Holds(state, now, ours)) (void)stopped.WriteMemory(now, std::as_bytes(original));
  };
  for (const Site* site : state.sites.Sorted()) {
    if (site->address() < start || site->address() >= end || !site->armed()) continue;
    if (!site->optimization()) {
      restore(site->address(), {&kBreakpointByte, 1}, {site->instruction().bytes.data(), 1});
      continue;
    }
    for (const CodePatch& patch : site->optimization()->patches)
      restore(patch.address, patch.patched, patch.original);
  }
}

void ForgetUnmapped(ProcessState& state) {
  auto space = AddressSpace::Read(state.id.pid);
  if (space.ok()) ForgetUnmapped(state, *space);
}

}  // namespace probed::probe
