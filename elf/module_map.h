#pragma once
// Which files a process has mapped where, from the text of /proc/PID/maps. Pure parsing here; the
// text is read by engine/sys. proc(5).
//
// On overlayfs and btrfs the device number in maps is not the one that stat gives for the same
// file. When FindFile(identity.device, identity.inode) answers nothing, look by path (FindPath, as
// the target sees it) and compare what is mapped: the inode on btrfs, else the build-id of
// /proc/PID/map_files/START-END.

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
  // As the target sees it; " (deleted)" removed, which a file may also really be called.
  std::string path;
  bool deleted = false;
};

// Mappings of one file, grouped by device and inode (or by name for [vdso], [stack]...).
struct Module {
  std::string path;
  uint64_t device = 0, inode = 0;
  bool deleted = false;
  std::vector<Mapping> mappings;  // ascending

  // Where `offset` is mapped executable; a file may be mapped several times.
  std::vector<RemoteAddr> Locate(FileOffset offset) const;
};

// MAPS_MALFORMED when a line is not as proc(5) says.
Result<std::vector<Mapping>> ParseMaps(std::string_view text);

class ModuleMap {
 public:
  explicit ModuleMap(std::vector<Mapping> mappings);
  const std::vector<Mapping>& mappings() const { return mappings_; }  // ascending
  const std::vector<Module>& modules() const { return modules_; }
  const Module* FindFile(uint64_t device, uint64_t inode) const;
  // A file by the target's own path for it; not one that was deleted or replaced.
  const Module* FindPath(std::string_view path) const;
  const Mapping* At(RemoteAddr address) const;
  // Where `offset` of that file is mapped executable.
  std::vector<RemoteAddr> Locate(uint64_t device, uint64_t inode, FileOffset offset) const;

 private:
  std::vector<Mapping> mappings_;
  std::vector<Module> modules_;
};

}  // namespace probed::elf
