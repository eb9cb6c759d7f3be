#include "engine/kernel/page_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/kernel/event_format.h"

namespace probed::kernel {
namespace {

// The largest sub-buffer that the kernel has (buffer_subbuf_size_kb); it may be changed while we
// read.
constexpr size_t kMaxPageBytes = 1 << 20;
constexpr uint64_t kRestBytes = 1 << 30;  // somebody may go on to record

}  // namespace

Result<std::unique_ptr<PageReader>> PageReader::Open(const std::string& instance_directory) {
  PROBED_TRY(auto pipes, OpenCpuPipes(instance_directory, "trace_pipe_raw"));
  std::unique_ptr<PageReader> reader(new PageReader(kMaxPageBytes));
  for (CpuPipe& pipe : pipes) {
    const uint64_t told = ReadOverrun(pipe.statistics).value_or(0);
    reader->cpus_.push_back({.pipe = std::move(pipe), .told = told});
  }
  return reader;
}

uint64_t PageReader::backlog() const {
  const auto unread = [](const Cpu& cpu) { return !cpu.all_read; };
  return std::any_of(cpus_.begin(), cpus_.end(), unread) ? max_bytes_ + 1 : 0;
}

Result<size_t> PageReader::ReadPage(const Cpu& cpu) {
  while (true) {
    const ssize_t bytes = ::read(cpu.pipe.fd.get(), page_.data(), page_.size());
    if (bytes >= 0) return static_cast<size_t>(bytes);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return ErrnoError(errno, "read trace_pipe_raw");
  }
}

uint64_t PageReader::TakeLoss(Cpu& cpu, const PageLoss& loss) {
  if (!loss.any) return 0;
  uint64_t total = cpu.told + loss.events.value_or(0);
  if (!loss.events || cpu.estimated) {
    const uint64_t overrun = ReadOverrun(cpu.pipe.statistics).value_or(total);
    total = loss.events ? std::min(total, overrun) : overrun;
    cpu.estimated = true;
  }
  const uint64_t lost = total > cpu.told ? total - cpu.told : 0;
  cpu.told += lost;
  lost_.fetch_add(lost, std::memory_order_relaxed);
  return lost;
}

void PageReader::Deliver(uint32_t index, std::span<const std::byte> bytes, const Sink& sink) {
  Cpu& cpu = cpus_[index];
  auto page = Page::Open(bytes);
  if (page.ok()) cpu.untold += TakeLoss(cpu, page->loss());
  while (page.ok()) {
    const auto event = page->Next();
    if (!event) break;
    uint16_t id = 0;
    int32_t tid = 0;
    if (event->record.size() < kCommonBytes) continue;
    std::memcpy(&id, event->record.data(), sizeof(id));
    std::memcpy(&tid, event->record.data() + kCommonPidOffset, sizeof(tid));
    sink({.cpu = index,
          .probe = id,
          .tsc = event->time,
          .thread = static_cast<uint32_t>(tid),
          .lost = std::exchange(cpu.untold, 0),
          .payload = event->record});
  }
  if (!page.ok() || page->damaged()) damaged_.fetch_add(1, std::memory_order_relaxed);
}

Status PageReader::DrainCpu(uint32_t index, uint64_t max_bytes, const Sink& sink) {
  cpus_[index].all_read = false;
  for (uint64_t taken = 0; taken < max_bytes;) {
    PROBED_TRY(const size_t bytes, ReadPage(cpus_[index]));
    if (bytes == 0) {
      cpus_[index].all_read = true;
      break;
    }
    Deliver(index, std::span(page_).first(bytes), sink);
    taken += bytes;
  }
  return {};
}

Status PageReader::Drain(uint64_t max_bytes, const Sink& sink) {
  max_bytes_ = max_bytes;
  for (uint32_t index = 0; index < cpu_count(); ++index)
    PROBED_RETURN_IF_ERROR(DrainCpu(index, max_bytes, sink));
  return {};
}

Status PageReader::Scan(const ScanSink&) {
  return {};
}

Status PageReader::DrainRest(const Sink& sink) {
  for (uint32_t index = 0; index < cpu_count(); ++index)
    PROBED_RETURN_IF_ERROR(DrainCpu(index, kRestBytes, sink));
  return {};
}

}  // namespace probed::kernel
