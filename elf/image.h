#pragma once
// Random access to the bytes of an ELF file, on disk (pread) or in memory. Reads never fail: what
// is not there is left out, so callers check sizes. Thread-safe after construction.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::elf {

class Image {
 public:
  // No single read hands out more; a larger claim in a file is a lie or not for us.
  static constexpr uint64_t kMaxRead = uint64_t{512} << 20;

  // A regular file. With `root`, a `path` below it is resolved as a process whose root directory is
  // `root` would: symbolic links do not lead out. Errors call the file `name`; empty: `path`.
  static Result<Image> Open(const std::string& path, const std::string& root,
                            const std::string& name = "");
  explicit Image(std::vector<uint8_t> bytes);

  int fd() const { return fd_.get(); }                          // -1 in memory
  const std::vector<uint8_t>& bytes() const { return bytes_; }  // empty on disk
  uint64_t size() const { return size_; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }

  // Whether all of it is there, and no more than kMaxRead.
  bool Holds(uint64_t offset, uint64_t size) const {
    return size <= kMaxRead && offset <= size_ && size <= size_ - offset;
  }

  // Fewer bytes at the end of the file, none past it.
  std::vector<uint8_t> Read(uint64_t offset, uint64_t size) const;
  // All `size` bytes, or false.
  bool ReadInto(uint64_t offset, void* out, size_t size) const;

 private:
  Image(UniqueFd fd, uint64_t size, uint64_t device, uint64_t inode);

  UniqueFd fd_;
  std::vector<uint8_t> bytes_;
  uint64_t size_ = 0, device_ = 0, inode_ = 0;
};

}  // namespace probed::elf
