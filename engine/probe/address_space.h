#pragma once
// What a process has mapped, and which file a typed path means in that process: its own root
// directory, its own mappings, deleted files included. Snapshot; any thread. proc(5).

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "elf/module_map.h"
#include "engine/lang/definition.h"

namespace probed::probe {

// A file as one process sees it.
struct FileReference {
  std::string path;       // as mapped, or as typed when it is not mapped
  std::string open_path;  // how this daemon opens it
  uint64_t device = 0;  // as in the maps of the process when it is mapped there, else as stat says
  uint64_t inode = 0;
  bool mapped = false;
};

class AddressSpace {
 public:
  static Result<AddressSpace> Read(pid_t pid);

  const elf::ModuleMap& map() const { return map_; }
  // A bare name (no slash) means the mapped module with that base name, else a file of that name in
  // the usual library and program directories. Errors: errno of the lookup
  // (metadata "errno"), NOT_A_REGULAR_FILE.
  Result<FileReference> Resolve(const std::string& path) const;
  FileReference Refer(const elf::Module& module) const;
  // The mapped module that a definition is about, or null.
  const elf::Module* Find(const lang::Definition& definition) const;
  // Where the module has `offset` mapped privately: executable, or writable (USDT counters).
  static std::vector<RemoteAddr> Executable(const elf::Module& module, FileOffset offset);
  static std::optional<RemoteAddr> Writable(const elf::Module& module, FileOffset offset);

 private:
  AddressSpace(pid_t pid, std::vector<elf::Mapping> mappings)
      : pid_(pid), map_(std::move(mappings)) {}
  const elf::Module* FindBaseName(std::string_view name) const;
  std::string MapFile(const elf::Module& module) const;
  bool IsStatOf(const elf::Module& module, uint64_t device, uint64_t inode) const;
  const elf::Module* FindStat(uint64_t device, uint64_t inode, const std::string& path) const;

  pid_t pid_;
  elf::ModuleMap map_;
};

// A value of the auxiliary vector (getauxval(3) numbers), or 0.
uint64_t ReadAuxiliaryValue(pid_t pid, uint64_t type);

}  // namespace probed::probe
