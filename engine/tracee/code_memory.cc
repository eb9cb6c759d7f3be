#include "engine/tracee/code_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/tracee/process.h"
#include "engine/tracee/thread.h"

namespace probed::tracee {
namespace {

bool AllStopped(const Process& process) {
  return std::all_of(process.threads().begin(), process.threads().end(), [](const auto& entry) {
    const Thread& thread = *entry.second;
    return thread.gone() || (thread.stopped() && !thread.stepping());
  });
}

}  // namespace

CodeMemory::CodeMemory(Stopped& stopped)
    : stopped_(stopped), alone_(AllStopped(stopped.process())) {}

// False: this page cannot be kept.
bool CodeMemory::Load(RemoteAddr address) {
  RemoteAddr page{address.value / kPageSize * kPageSize};
  if (!alone_) return false;
  if (page == page_ && loaded_) return true;
  Flush();
  page_ = page;
  writable_ = false;
  loaded_ = stopped_.ReadMemory(page, std::as_writable_bytes(std::span(bytes_))).ok();
  return loaded_;
}

Status CodeMemory::Read(RemoteAddr address, std::span<uint8_t> out) {
  while (!out.empty()) {
    size_t offset = address.value % kPageSize;
    auto piece = out.first(std::min(out.size(), kPageSize - offset));
    if (Load(address)) {
      std::copy_n(bytes_.begin() + offset, piece.size(), piece.begin());
    } else {
      PROBED_RETURN_IF_ERROR(stopped_.ReadMemory(address, std::as_writable_bytes(piece)));
    }
    address = address + piece.size();
    out = out.subspan(piece.size());
  }
  return {};
}

Status CodeMemory::Write(RemoteAddr address, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    auto piece = bytes.first(std::min(bytes.size(), kPageSize - address.value % kPageSize));
    PROBED_RETURN_IF_ERROR(WriteInPage(address, piece));
    address = address + piece.size();
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

// The first goes out at once and tells whether that is possible: from then on the page is the
// process's own copy.
Status CodeMemory::WriteInPage(RemoteAddr address, std::span<const uint8_t> bytes) {
  bool loaded = Load(address);
  if (!loaded || !writable_) {
    PROBED_RETURN_IF_ERROR(stopped_.WriteMemory(address, std::as_bytes(bytes)));
    if (!loaded) return {};
  }
  size_t offset = address.value % kPageSize;
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + offset);
  if (!std::exchange(writable_, true)) return {};
  dirty_begin_ = std::min(dirty_begin_, offset);
  dirty_end_ = std::max(dirty_end_, offset + bytes.size());
  return {};
}

bool CodeMemory::Holds(RemoteAddr address, std::span<const uint8_t> expected) {
  size_t offset = address.value % kPageSize;
  if (offset + expected.size() <= kPageSize && Load(address)) {
    return std::equal(expected.begin(), expected.end(), bytes_.begin() + offset);
  }
  std::vector<uint8_t> present(expected.size());
  return Read(address, present).ok() &&
         std::equal(expected.begin(), expected.end(), present.begin());
}

// Where a write to the page has succeeded in this stop, another fails only if the process is gone.
void CodeMemory::Flush() {
  if (dirty_begin_ < dirty_end_) {
    auto dirty = std::span(bytes_).subspan(dirty_begin_, dirty_end_ - dirty_begin_);
    (void)stopped_.WriteMemory(page_ + dirty_begin_, std::as_bytes(dirty));
  }
  dirty_begin_ = kPageSize;
  dirty_end_ = 0;
}

}  // namespace probed::tracee
