#include "engine/kernel/pipe_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "engine/kernel/event_format.h"

namespace probed::kernel {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr uint64_t kRestBytes = 1 << 30;  // somebody may go on to record

void Append(std::string_view text, std::vector<std::byte>& payload) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  payload.insert(payload.end(), bytes, bytes + text.size());
}

}  // namespace

Result<std::unique_ptr<PipeReader>> PipeReader::Open(const std::string& instance_directory) {
  PROBED_TRY(auto pipes, OpenCpuPipes(instance_directory, "trace_pipe"));
  std::unique_ptr<PipeReader> reader(new PipeReader);
  reader->buffer_.resize(kBufferBytes);
  for (CpuPipe& pipe : pipes) {
    Cpu& cpu = reader->cpus_.emplace_back();
    cpu.told = ReadOverrun(pipe.statistics).value_or(0);
    cpu.pipe = std::move(pipe);
  }
  return reader;
}

Status PipeReader::Learn(uint16_t id, const std::string& event) {
  std::lock_guard lock(names_mutex_);
  if (names_.emplace(event, id).second) return {};
  return Error{.code = ErrorCode::kAlreadyExists,
               .reason = "EVENT_NAME_TAKEN",
               .message = fmt::format("{} is traced in another group already", event),
               .hint = "the kernel's rings can only be read as text here, which has no groups",
               .metadata = {}};
}

void PipeReader::Forget(uint16_t id) {
  std::lock_guard lock(names_mutex_);
  std::erase_if(names_, [id](const auto& entry) { return entry.second == id; });
}

// 0 is no event's.
uint16_t PipeReader::IdOf(std::string_view event) {
  std::lock_guard lock(names_mutex_);
  const auto found = names_.find(event);
  return found == names_.end() ? 0 : found->second;
}

uint64_t PipeReader::backlog() const {
  const auto unread = [](const Cpu& cpu) { return !cpu.all_read; };
  return std::any_of(cpus_.begin(), cpus_.end(), unread) ? max_bytes_ + 1 : 0;
}

Result<size_t> PipeReader::Read(Cpu& cpu) {
  while (true) {
    const ssize_t bytes = ::read(cpu.pipe.fd.get(), buffer_.data(), buffer_.size());
    if (bytes >= 0) {
      cpu.unread.append(buffer_.data(), static_cast<size_t>(bytes));
      return static_cast<size_t>(bytes);
    }
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) return ErrnoError(errno, "read trace_pipe");
  }
}

// How many is in the line where the kernel knows; all that it knows is in the ring's own counter.
void PipeReader::TakeLoss(Cpu& cpu) {
  const uint64_t overrun = ReadOverrun(cpu.pipe.statistics).value_or(cpu.told);
  const uint64_t lost = overrun > cpu.told ? overrun - cpu.told : 0;
  cpu.told += lost;
  cpu.untold += lost;
  lost_.fetch_add(lost, std::memory_order_relaxed);
}

void PipeReader::Deliver(Cpu& cpu, const Sink& sink) {
  if (!std::exchange(cpu.pending, false)) return;
  cpu.record.payload = cpu.payload;
  sink(cpu.record);
}

void PipeReader::Begin(uint32_t index, const PipeLine& line) {
  Cpu& cpu = cpus_[index];
  cpu.pending = true;
  cpu.record = {.cpu = index,
                .probe = IdOf(line.event),
                .tsc = line.time,
                .thread = static_cast<uint32_t>(line.tid),
                .lost = std::exchange(cpu.untold, 0),
                .payload = {}};
  cpu.payload.assign(kCommonBytes, std::byte{0});
  cpu.payload[kCommonFlagsOffset] = std::byte{line.flags};
  cpu.payload[kCommonPreemptCountOffset] = std::byte{line.preempt_count};
  std::memcpy(cpu.payload.data() + kCommonPidOffset, &line.tid, sizeof(line.tid));
  Append(line.text, cpu.payload);
}

void PipeReader::TakeLine(uint32_t index, std::string_view line, const Sink& sink) {
  Cpu& cpu = cpus_[index];
  const bool lost = SaysLost(line);
  const auto parsed = lost ? std::nullopt : ParsePipeLine(line);
  if (!lost && !parsed) {  // of a stack, or of a string with a newline in it
    if (!cpu.pending) return;
    Append("\n", cpu.payload);
    return Append(line, cpu.payload);
  }
  Deliver(cpu, sink);
  if (lost) return TakeLoss(cpu);
  Begin(index, *parsed);
}

void PipeReader::TakeLines(uint32_t index, const Sink& sink) {
  std::string& unread = cpus_[index].unread;
  size_t begin = 0;
  for (size_t end = unread.find('\n'); end != unread.npos; end = unread.find('\n', begin)) {
    TakeLine(index, std::string_view(unread).substr(begin, end - begin), sink);
    begin = end + 1;
  }
  unread.erase(0, begin);
}

// A read gives whole records, of which the last one has come to its end.
Status PipeReader::DrainCpu(uint32_t index, uint64_t max_bytes, const Sink& sink) {
  Cpu& cpu = cpus_[index];
  cpu.all_read = false;
  for (uint64_t taken = 0; taken < max_bytes;) {
    PROBED_TRY(const size_t bytes, Read(cpu));
    if (bytes == 0) {
      cpu.all_read = true;
      break;
    }
    TakeLines(index, sink);
    if (cpu.unread.empty()) Deliver(cpu, sink);
    taken += bytes;
  }
  return {};
}

Status PipeReader::Drain(uint64_t max_bytes, const Sink& sink) {
  max_bytes_ = max_bytes;
  for (uint32_t index = 0; index < cpu_count(); ++index)
    PROBED_RETURN_IF_ERROR(DrainCpu(index, max_bytes, sink));
  return {};
}

Status PipeReader::DrainRest(const Sink& sink) {
  for (uint32_t index = 0; index < cpu_count(); ++index)
    PROBED_RETURN_IF_ERROR(DrainCpu(index, kRestBytes, sink));
  return {};
}

}  // namespace probed::kernel
