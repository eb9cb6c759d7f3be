#pragma once
// Which files a process has mapped where, from the text of /proc/PID/maps. Pure parsing here; the
// text is read by engine/sys. proc(5).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace probed::elf {

struct Mapping {
  RemoteAddr start, end;
  bool readable = false, writable = false, executable = false, shared = false;
  FileOffset offset;
  uint64_t device = 0;  // as stat's st_dev (makedev)
  uint64_t inode = 0;
  std::string path;  // " (deleted)" removed
  bool deleted = false;
};

// Mappings of one file, grouped by device and inode (or by name for [vdso], memfd...).
struct Module {
  std::string path;
  uint64_t device = 0, inode = 0;
  bool deleted = false;
  std::vector<Mapping> mappings;  // ascending
};

Result<std::vector<Mapping>> ParseMaps(std::string_view text);

class ModuleMap {
 public:
  explicit ModuleMap(std::vector<Mapping> mappings);
  const std::vector<Mapping>& mappings() const { return mappings_; }
  const std::vector<Module>& modules() const { return modules_; }
  const Module* FindFile(uint64_t device, uint64_t inode) const;
  const Mapping* At(RemoteAddr address) const;
  // Where `offset` of that file is mapped executable; one file may be mapped several times.
  std::vector<RemoteAddr> Locate(uint64_t device, uint64_t inode, FileOffset offset) const;

 private:
  std::vector<Mapping> mappings_;
  std::vector<Module> modules_;
};

}  // namespace probed::elf
