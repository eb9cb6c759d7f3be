#include "engine/probe/file_cache.h"

#include <sys/stat.h>

#include <cerrno>

namespace probed::probe {
namespace {

constexpr size_t kMostUnused = 64;

}  // namespace

Result<std::shared_ptr<const elf::File>> FileCache::Open(const FileReference& file,
                                                         const std::string& root) {
  struct stat status {};
  if (::stat(file.open_path.c_str(), &status) != 0) return ErrnoError(errno, file.path);
  Key key(status.st_dev, status.st_ino, status.st_size,
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
  std::lock_guard lock(mutex_);
  if (auto found = files_.find(key); found != files_.end()) return found->second;
  PROBED_TRY(auto opened, elf::File::Open(file.open_path, root, file.path));
  DropUnused();
  files_[key] = opened;
  return opened;
}

void FileCache::DropUnused() {
  if (files_.size() < kMostUnused) return;
  std::erase_if(files_, [](const auto& entry) { return entry.second.use_count() == 1; });
}

}  // namespace probed::probe
