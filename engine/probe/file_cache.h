#pragma once
// ELF files that are in use, opened once. Thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "base/result.h"
#include "elf/file.h"
#include "engine/probe/address_space.h"

namespace probed::probe {

class FileCache {
 public:
  // `root` is where separate debug files are looked for, "/proc/PID/root".
  Result<std::shared_ptr<const elf::File>> Open(const FileReference& file, const std::string& root);

 private:
  // Device, inode, size, modification time: an inode number may be reused for another file.
  using Key = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;
  void DropUnused();

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const elf::File>> files_;
};

}  // namespace probed::probe
