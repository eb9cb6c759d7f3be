#include "engine/sys/process_memory.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"

namespace probed::sys {
namespace {

constexpr uint64_t kPageSize = 4096;
constexpr size_t kWordSize = sizeof(uint64_t);

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

Error Unreadable(pid_t pid, uint64_t address) {
  return Error{
      .code = ErrorCode::kFailedPrecondition,
      .reason = "MEMORY_UNREADABLE",
      .message = "process " + std::to_string(pid) + " has no readable memory at " + Hex(address),
      .hint = "",
      .metadata = {{"address", Hex(address)}}};
}

Error Unwritable(pid_t pid, uint64_t address, int error_number) {
  Error error = ErrnoError(
      error_number, "write to memory of process " + std::to_string(pid) + " at " + Hex(address));
  error.reason = error_number == ESRCH ? "PROCESS_GONE" : "MEMORY_UNWRITABLE";
  error.metadata["address"] = Hex(address);
  return error;
}

// One process_vm_readv with an iovec a page: the kernel stops at the first page it cannot read, so
// what precedes it arrives.
class Gather {
 public:
  void Add(RemoteAddr address, std::span<std::byte> out) {
    local_[count_] = {.iov_base = out.data(), .iov_len = out.size()};
    remote_[count_++] = {.iov_base = reinterpret_cast<void*>(address.value), .iov_len = out.size()};
  }
  // As much as has room; returns how much that is.
  size_t AddPages(RemoteAddr address, std::span<std::byte> out) {
    size_t added = 0;
    while (added < out.size() && count_ < kMaxPieces) {
      uint64_t at = address.value + added;
      size_t chunk = std::min<size_t>(out.size() - added, kPageSize - at % kPageSize);
      Add(RemoteAddr{at}, out.subspan(added, chunk));
      added += chunk;
    }
    return added;
  }
  ssize_t Read(pid_t task) const {
    return ::process_vm_readv(task, local_, count_, remote_, count_, 0);
  }

 private:
  static constexpr size_t kMaxPieces = 8;  // more would not fit on the kernel's stack (UIO_FASTIOV)
  iovec local_[kMaxPieces];
  iovec remote_[kMaxPieces];
  size_t count_ = 0;
};

}  // namespace

ProcessMemory::ProcessMemory(pid_t pid, UniqueFd read_fd, UniqueFd write_fd)
    : pid_(pid), task_(pid), read_fd_(std::move(read_fd)), write_fd_(std::move(write_fd)) {}

Result<ProcessMemory> ProcessMemory::Open(pid_t pid) {
  const std::string path = ProcPath(pid, "mem");
  // Opening either way may be refused by file mode (0600) where ptrace is allowed; reads then go
  // through process_vm_readv and writes through POKETEXT.
  Result<UniqueFd> both = OpenFile(path, O_RDWR);
  if (both.ok()) return ProcessMemory(pid, UniqueFd(), std::move(*both));
  Result<UniqueFd> read_only = OpenFile(path, O_RDONLY);
  UniqueFd read_fd = read_only.ok() ? std::move(*read_only) : UniqueFd();
  return ProcessMemory(pid, std::move(read_fd), UniqueFd());
}

template <class Call>
size_t ProcessMemory::OfTask(const Call& call) const {
  ssize_t count = call(task_);
  if (count < 0 && errno == ESRCH) {
    task_ = LivingTask(pid_);
    count = call(task_);
  }
  return count < 0 ? 0 : static_cast<size_t>(count);
}

size_t ProcessMemory::ReadSome(RemoteAddr address, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    Gather gather;
    size_t wanted = gather.AddPages(address + done, out.subspan(done));
    size_t count = OfTask([&](pid_t task) { return gather.Read(task); });
    done += count;
    if (count < wanted) break;
  }
  return done;
}

size_t ProcessMemory::ReadSomeWith(RemoteAddr extra_address, std::span<std::byte> extra,
                                   RemoteAddr address, std::span<std::byte> out) const {
  Gather gather;
  gather.Add(extra_address, extra);
  size_t wanted = gather.AddPages(address, out);
  size_t count = OfTask([&](pid_t task) { return gather.Read(task); });
  if (count < extra.size()) return ReadSome(address, out);
  count -= extra.size();
  if (count < wanted || count == out.size()) return count;
  return count + ReadSome(address + count, out.subspan(count));
}

Status ProcessMemory::Read(RemoteAddr address, std::span<std::byte> out) const {
  size_t done = ReadSome(address, out);
  // Execute-only pages refuse process_vm_readv; /proc/PID/mem forces its way.
  int fd = write_fd_.valid() ? write_fd_.get() : read_fd_.get();
  while (done < out.size() && fd >= 0) {
    ssize_t count =
        ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(address.value + done));
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  if (done < out.size()) return Unreadable(pid_, address.value + done);
  return {};
}

Status ProcessMemory::Write(RemoteAddr address, std::span<const std::byte> bytes,
                            pid_t stopped_tid) const {
  size_t done = 0;
  while (done < bytes.size() && write_fd_.valid()) {
    ssize_t count = ::pwrite(write_fd_.get(), bytes.data() + done, bytes.size() - done,
                             static_cast<off_t>(address.value + done));
    if (count <= 0) return Unwritable(pid_, address.value + done, count < 0 ? errno : ESRCH);
    done += static_cast<size_t>(count);
  }
  while (done < bytes.size()) {
    uint64_t word_start = (address.value + done) / kWordSize * kWordSize;
    size_t skip = address.value + done - word_start;
    size_t chunk = std::min(kWordSize - skip, bytes.size() - done);
    std::byte word[kWordSize];
    PROBED_RETURN_IF_ERROR(Read(RemoteAddr{word_start}, word));
    std::memcpy(word + skip, bytes.data() + done, chunk);
    uint64_t value = 0;
    std::memcpy(&value, word, sizeof value);
    Errno error = PokeText(stopped_tid, word_start, value);
    if (!error.ok()) return Unwritable(pid_, word_start, error.value);
    done += chunk;
  }
  return {};
}

bool ProcessMemory::WriteWithinPage(RemoteAddr address, std::span<const std::byte> bytes) const {
  iovec local{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  iovec remote{.iov_base = reinterpret_cast<void*>(address.value), .iov_len = bytes.size()};
  return OfTask([&](pid_t task) { return ::process_vm_writev(task, &local, 1, &remote, 1, 0); }) ==
         bytes.size();
}

bool ProcessMemory::WriteAsProgram(RemoteAddr address, std::span<const std::byte> bytes) const {
  size_t head = std::min<size_t>(bytes.size(), kPageSize - address.value % kPageSize);
  if (head == bytes.size()) return WriteWithinPage(address, bytes);
  // The kernel would leave the first page written if the second refuses: begin with the rest, and
  // take it back if the first page refuses.
  auto rest = bytes.subspan(head);
  std::vector<std::byte> before(rest.size());
  if (ReadSome(address + head, before) != before.size()) return false;
  if (!WriteAsProgram(address + head, rest)) return false;
  if (WriteWithinPage(address, bytes.first(head))) return true;
  (void)WriteAsProgram(address + head, before);
  return false;
}

}  // namespace probed::sys
