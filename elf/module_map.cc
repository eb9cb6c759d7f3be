#include "elf/module_map.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace probed::elf {
namespace {

using ModuleKey = std::tuple<uint64_t, uint64_t, std::string>;

ModuleKey KeyOf(const Mapping& mapping) {
  return mapping.inode != 0 ? ModuleKey{mapping.device, mapping.inode, ""}
                            : ModuleKey{0, 0, mapping.path};
}

std::vector<Module> GroupByFile(const std::vector<Mapping>& mappings) {
  std::vector<Module> modules;
  std::map<ModuleKey, size_t> positions;
  for (const Mapping& mapping : mappings) {
    if (mapping.inode == 0 && mapping.path.empty()) continue;  // anonymous memory
    auto [position, is_new] = positions.emplace(KeyOf(mapping), modules.size());
    if (is_new) {
      modules.push_back({.path = mapping.path,
                         .device = mapping.device,
                         .inode = mapping.inode,
                         .deleted = mapping.deleted,
                         .mappings = {}});
    }
    modules[position->second].mappings.push_back(mapping);
  }
  return modules;
}

}  // namespace

ModuleMap::ModuleMap(std::vector<Mapping> mappings) : mappings_(std::move(mappings)) {
  std::sort(mappings_.begin(), mappings_.end(),
            [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
  modules_ = GroupByFile(mappings_);
}

const Module* ModuleMap::FindFile(uint64_t device, uint64_t inode) const {
  auto found = std::find_if(modules_.begin(), modules_.end(), [&](const Module& module) {
    return inode != 0 && module.device == device && module.inode == inode;
  });
  return found == modules_.end() ? nullptr : &*found;
}

const Module* ModuleMap::FindPath(std::string_view path) const {
  auto found = std::find_if(modules_.begin(), modules_.end(), [&](const Module& module) {
    return module.path == path && !module.deleted;
  });
  return found == modules_.end() ? nullptr : &*found;
}

const Mapping* ModuleMap::At(RemoteAddr address) const {
  auto next = std::upper_bound(
      mappings_.begin(), mappings_.end(), address,
      [](RemoteAddr wanted, const Mapping& mapping) { return wanted < mapping.start; });
  if (next == mappings_.begin()) return nullptr;
  const Mapping& candidate = *std::prev(next);
  return address < candidate.end ? &candidate : nullptr;
}

std::vector<RemoteAddr> ModuleMap::Locate(uint64_t device, uint64_t inode,
                                          FileOffset offset) const {
  const Module* module = FindFile(device, inode);
  return module == nullptr ? std::vector<RemoteAddr>{} : module->Locate(offset);
}

std::vector<RemoteAddr> Module::Locate(FileOffset wanted) const {
  std::vector<RemoteAddr> found;
  for (const Mapping& mapping : mappings) {
    bool holds = wanted >= mapping.offset && wanted - mapping.offset < mapping.end - mapping.start;
    if (mapping.executable && holds) found.push_back(mapping.start + (wanted - mapping.offset));
  }
  return found;
}

}  // namespace probed::elf
