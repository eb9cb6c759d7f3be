#include "engine/kernel/page_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/file.h"
#include "engine/kernel/event_format.h"

namespace probed::kernel {
namespace {

// The largest sub-buffer that the kernel has (buffer_subbuf_size_kb); it may be changed while we
// read.
constexpr size_t kMaxPageBytes = 1 << 20;
constexpr uint64_t kRestBytes = 1 << 30;  // somebody may go on to record

std::optional<uint64_t> ToNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::vector<uint32_t> ListCpus(const std::string& directory) {
  std::vector<uint32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  if (!entries) return numbers;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with("cpu")) continue;
    if (const auto number = ToNumber(name.substr(3)))
      numbers.push_back(static_cast<uint32_t>(*number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// "overrun: N" of per_cpu/cpuN/stats: all that was ever overwritten unread.
std::optional<uint64_t> ReadOverrun(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return std::nullopt;
  constexpr std::string_view kKey = "\noverrun: ";
  const size_t at = text->find(kKey);
  if (at == text->npos) return std::nullopt;
  return ToNumber(std::string_view(*text).substr(at + kKey.size()));
}

Error Refused(const std::string& path, const Error& cause) {
  Error error = cause;
  error.reason = "KERNEL_RING_REFUSED";
  error.message = "cannot read the kernel's ring " + path + ": " + cause.message;
  return error;
}

}  // namespace

Result<std::unique_ptr<PageReader>> PageReader::Open(const std::string& instance_directory) {
  const std::string directory = instance_directory + "/per_cpu";
  std::unique_ptr<PageReader> reader(new PageReader(kMaxPageBytes));
  for (const uint32_t number : ListCpus(directory))
    PROBED_RETURN_IF_ERROR(reader->OpenCpu(directory, number));
  if (reader->cpus_.empty()) return Refused(directory, ErrnoError(ENOENT, "list CPUs"));
  return reader;
}

Status PageReader::OpenCpu(const std::string& directory, uint32_t number) {
  const std::string path = directory + "/cpu" + std::to_string(number);
  auto pages = OpenFile(path + "/trace_pipe_raw", O_RDONLY | O_NONBLOCK);
  if (!pages.ok()) return Refused(path, pages.error());
  Cpu cpu;
  cpu.number = number;
  cpu.pages = *std::move(pages);
  cpu.statistics = path + "/stats";
  cpu.told = ReadOverrun(cpu.statistics).value_or(0);
  cpus_.push_back(std::move(cpu));
  return {};
}

uint64_t PageReader::backlog() const {
  const auto unread = [](const Cpu& cpu) { return !cpu.all_read; };
  return std::any_of(cpus_.begin(), cpus_.end(), unread) ? max_bytes_ + 1 : 0;
}

Result<size_t> PageReader::ReadPage(const Cpu& cpu) {
  while (true) {
    const ssize_t bytes = ::read(cpu.pages.get(), page_.data(), page_.size());
    if (bytes >= 0) return static_cast<size_t>(bytes);
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return ErrnoError(errno, "read trace_pipe_raw");
  }
}

uint64_t PageReader::TakeLoss(Cpu& cpu, const PageLoss& loss) {
  if (!loss.any) return 0;
  uint64_t total = cpu.told + loss.events.value_or(0);
  if (!loss.events || cpu.estimated) {
    const uint64_t overrun = ReadOverrun(cpu.statistics).value_or(total);
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
