#include "elf/image.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"

namespace probed::elf {
namespace {

// O_NONBLOCK: a FIFO in the place of a file must not stop us.
constexpr int kOpenFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

bool IsBelow(const std::string& path, const std::string& root) {
  return root.size() > 1 && path.size() > root.size() && path.starts_with(root) &&
         path[root.size()] == '/';
}

Result<UniqueFd> Opened(long fd, const std::string& name) {
  if (fd < 0) return ErrnoError(errno, "open " + name);
  return UniqueFd(static_cast<int>(fd));
}

// openat2(2), RESOLVE_IN_ROOT: absolute links inside a container stay inside it.
Result<UniqueFd> OpenInRoot(const std::string& root, const std::string& path,
                            const std::string& name) {
  PROBED_TRY(UniqueFd directory, OpenFile(root, O_PATH | O_DIRECTORY));
  open_how how{.flags = kOpenFlags, .mode = 0, .resolve = RESOLVE_IN_ROOT};
  return Opened(::syscall(SYS_openat2, directory.get(), path.c_str(), &how, sizeof how), name);
}

// Kernels before 5.6 and some seccomp profiles do not know openat2.
bool IsUnsupported(const Error& error) {
  auto number = error.metadata.find("errno");
  return number != error.metadata.end() && number->second == std::to_string(ENOSYS);
}

Result<UniqueFd> OpenBytes(const std::string& path, const std::string& root,
                           const std::string& name) {
  if (IsBelow(path, root)) {
    auto fd = OpenInRoot(root, path.substr(root.size()), name);
    if (fd.ok() || !IsUnsupported(fd.error())) return fd;
  }
  return Opened(::open(path.c_str(), kOpenFlags), name);
}

}  // namespace

Result<Image> Image::Open(const std::string& path, const std::string& root,
                          const std::string& name) {
  const std::string& shown = name.empty() ? path : name;
  PROBED_TRY(UniqueFd fd, OpenBytes(path, root, shown));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return ErrnoError(errno, "stat " + shown);
  if (!S_ISREG(status.st_mode)) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "NOT_ELF",
                 .message = shown + " is not a regular file",
                 .hint = "name a program or a shared library",
                 .metadata = {{"path", shown}}};
  }
  return Image(std::move(fd), static_cast<uint64_t>(status.st_size), status.st_dev, status.st_ino);
}

Image::Image(UniqueFd fd, uint64_t size, uint64_t device, uint64_t inode)
    : fd_(std::move(fd)), size_(size), device_(device), inode_(inode) {}

Image::Image(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)), size_(bytes_.size()) {}

std::vector<uint8_t> Image::Read(uint64_t offset, uint64_t size) const {
  if (offset >= size_) return {};
  std::vector<uint8_t> bytes(std::min({size, size_ - offset, kMaxRead}));
  if (!ReadInto(offset, bytes.data(), bytes.size())) bytes.clear();
  return bytes;
}

bool Image::ReadInto(uint64_t offset, void* out, size_t size) const {
  if (!Holds(offset, size)) return false;
  if (!fd_.valid()) {
    std::copy_n(bytes_.data() + offset, size, static_cast<uint8_t*>(out));
    return true;
  }
  for (size_t done = 0; done < size;) {
    ssize_t count = ::pread(fd_.get(), static_cast<uint8_t*>(out) + done, size - done,
                            static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace probed::elf
