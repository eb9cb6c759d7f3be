#include "engine/tracee/shared_mapping.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "elf/module_map.h"
#include "engine/sys/pidfd.h"
#include "engine/sys/proc.h"
#include "engine/tracee/process.h"
#include "engine/tracee/remote_call.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

namespace probed::tracee {
namespace {

Error Refused(std::string_view call, const Error& cause) {
  if (cause.reason == "SECCOMP_ACTIVE" || cause.code == ErrorCode::kNotFound) return cause;
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "SHARED_MEMORY_REFUSED",
               .message = "the program may not make shared memory: " + std::string(call) + ": " +
                          cause.message,
               .hint = "look at its limits (/proc/PID/limits)",
               .metadata = {}};
}

Error Tampered() {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "SHARED_MEMORY_REFUSED",
               .message = "the program has touched the new file meanwhile",
               .hint = "",
               .metadata = {}};
}

// Not executable where the kernel can say so (since Linux 6.3; vm.memfd_noexec may demand it).
Result<uint64_t> CreateFile(Stopped& stopped, RemoteAddr name) {
  constexpr uint64_t kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  auto create = [&](uint64_t flags) {
    return RemoteSyscall(stopped, SYS_memfd_create, {name.value, flags, 0, 0, 0, 0});
  };
  Result<uint64_t> created = create(kFlags | MFD_NOEXEC_SEAL);
  bool unknown_flag = !created.ok() && created.error().code == ErrorCode::kInvalidArgument;
  return unknown_flag ? create(kFlags) : created;
}

// The name must be in the target's memory: in our own part of it, for a moment.
Result<int> CreateNamedFile(Stopped& stopped, std::string_view name) {
  CodeArena& arena = stopped.process().arena();
  std::string text(name);
  auto bytes = std::as_bytes(std::span(text.c_str(), text.size() + 1));
  auto place =
      arena.Allocate(stopped, Window::Around(RemoteAddr{stopped.regs().rip}), bytes.size());
  if (!place.ok()) return Refused("mmap", place.error());
  Status written = stopped.WriteMemory(*place, bytes);
  Result<uint64_t> created =
      written.ok() ? CreateFile(stopped, *place) : std::move(written).error();
  arena.Free(*place, bytes.size());
  if (!created.ok()) return Refused("memfd_create", created.error());
  return static_cast<int>(*created);
}

// The target's own open file, with the rights that it has: opening /proc/PID/fd/N would add ours.
Result<UniqueFd> TakeFile(pid_t pid, int remote_fd) {
  PROBED_TRY(UniqueFd process, sys::OpenThread(sys::LivingTask(pid)));
  UniqueFd file(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), remote_fd, 0)));
  if (!file.valid()) return ErrnoError(errno, "pidfd_getfd");
  // Another thread may have put any file in its place: only a new memfd has neither size nor seals.
  struct stat status {};
  int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & ~F_SEAL_EXEC) != 0 || ::fstat(file.get(), &status) != 0 ||
      status.st_size != 0) {
    return Tampered();
  }
  return file;
}

Status Seal(int file, size_t size, SharedMapping::Access access) {
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  if (access == SharedMapping::Access::kTargetReads) seals |= F_SEAL_FUTURE_WRITE;
  if (::fcntl(file, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) return ErrnoError(errno, "F_ADD_SEALS");
  struct stat status {};
  if (::fstat(file, &status) != 0) return ErrnoError(errno, "fstat");
  return static_cast<size_t>(status.st_size) == size ? Status() : Tampered();
}

// What was mapped before the seal may be written for good, or be made writable later.
Status CheckNotMapped(pid_t pid, int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return ErrnoError(errno, "fstat");
  PROBED_TRY(std::string text, sys::ReadMaps(pid));
  PROBED_TRY(std::vector<elf::Mapping> mappings, elf::ParseMaps(text));
  bool mapped = std::any_of(mappings.begin(), mappings.end(), [&](const elf::Mapping& mapping) {
    return mapping.inode == status.st_ino && mapping.device == status.st_dev;
  });
  return mapped ? Status(Tampered()) : Status();
}

}  // namespace

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), remote_(std::exchange(other.remote_, {})) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(remote_, other.remote_);
  return *this;
}

SharedMapping::~SharedMapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<SharedMapping> SharedMapping::Adopt(Stopped& stopped, int remote_fd,
                                           const Request& request) {
  PROBED_TRY(UniqueFd file, TakeFile(stopped.process().pid(), remote_fd));
  if (::ftruncate(file.get(), static_cast<off_t>(request.size)) != 0) {
    return ErrnoError(errno, "ftruncate");
  }
  void* mapped = ::mmap(nullptr, request.size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return ErrnoError(errno, "mmap");
  SharedMapping mapping({static_cast<std::byte*>(mapped), request.size});
  PROBED_RETURN_IF_ERROR(Seal(file.get(), request.size, request.access));
  if (request.access == Access::kTargetReads) {
    PROBED_RETURN_IF_ERROR(CheckNotMapped(stopped.process().pid(), file.get()));
  }
  uint64_t protection = request.access == Access::kTargetReads ? PROT_READ : PROT_READ | PROT_WRITE;
  auto map = [&](uint64_t flags) {
    return RemoteSyscall(stopped, SYS_mmap,
                         {request.at.value, request.size, protection, MAP_SHARED | flags,
                          static_cast<uint64_t>(remote_fd), 0});
  };
  // Code names low addresses in half the bytes (mmap(2), MAP_32BIT).
  auto remote = map(request.at.value != 0 ? MAP_FIXED : MAP_32BIT);
  if (!remote.ok() && request.at.value == 0) remote = map(0);
  if (!remote.ok()) return Refused("mmap", remote.error());
  mapping.remote_ = RemoteAddr{*remote};
  return mapping;
}

Result<SharedMapping> SharedMapping::Create(Stopped& stopped, const Request& request) {
  PROBED_TRY(int remote_fd, CreateNamedFile(stopped, request.name));
  Result<SharedMapping> mapping = Adopt(stopped, remote_fd, request);
  Result<uint64_t> closed =
      RemoteSyscall(stopped, SYS_close, {static_cast<uint64_t>(remote_fd), 0, 0, 0, 0, 0});
  if (mapping.ok() && !closed.ok() && closed.error().code == ErrorCode::kNotFound) {
    return std::move(closed).error();
  }
  return mapping;
}

Status SharedMapping::Unmap(Stopped& stopped) const {
  PROBED_TRY([[maybe_unused]] uint64_t unmapped,
             RemoteSyscall(stopped, SYS_munmap, {remote_.value, bytes_.size(), 0, 0, 0, 0}));
  return {};
}

}  // namespace probed::tracee
