#pragma once
// Reads the rings of a tracefs instance as text, CPU by CPU (per_cpu/cpuN/trace_pipe): what is left
// where trace_pipe_raw cannot be opened. Its payload is eight bytes like a record's common fields,
// then PipeLine::text. One thread, but for what EventReader says.
//
// Two events of one name cannot be told apart. A string with a newline and what looks like the
// begin of a record in it is taken for one.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/kernel/cpu_pipes.h"
#include "engine/kernel/event_reader.h"
#include "engine/kernel/pipe_line.h"

namespace probed::kernel {

class PipeReader final : public EventReader {
 public:
  static Result<std::unique_ptr<PipeReader>> Open(const std::string& instance_directory);

  Status Drain(uint64_t max_bytes, const Sink& sink) override;
  Status Scan(const ScanSink&) override { return {}; }
  Status DrainRest(const Sink& sink) override;

  uint32_t cpu_count() const override { return static_cast<uint32_t>(cpus_.size()); }
  uint32_t cpu_number(uint32_t index) const override { return cpus_[index].pipe.number; }
  uint64_t backlog() const override;
  bool AllRead(uint32_t cpu) const override { return cpus_[cpu].all_read; }
  bool Blocked(uint32_t) const override { return false; }
  void ReleasePages() override {}
  uint64_t lost() const override { return lost_.load(std::memory_order_relaxed); }
  Status Learn(uint16_t id, const std::string& event) override;
  void Forget(uint16_t id) override;

 private:
  struct Cpu {
    CpuPipe pipe;
    uint64_t told = 0;    // overruns that readers know of
    uint64_t untold = 0;  // of these, those that no record has told
    std::string unread;   // what no newline has ended
    bool pending = false;
    ring::RawRecord record;  // its text may go on in the next line
    std::vector<std::byte> payload;
    bool all_read = true;
  };
  Status DrainCpu(uint32_t index, uint64_t max_bytes, const Sink& sink);
  Result<size_t> Read(Cpu& cpu);  // 0: there is nothing
  void TakeLines(uint32_t index, const Sink& sink);
  void TakeLine(uint32_t index, std::string_view line, const Sink& sink);
  void Begin(uint32_t index, const PipeLine& line);
  void Deliver(Cpu& cpu, const Sink& sink);
  void TakeLoss(Cpu& cpu);
  uint16_t IdOf(std::string_view event);

  std::vector<Cpu> cpus_;
  uint64_t max_bytes_ = 0;  // of the last drain
  std::vector<char> buffer_;
  std::atomic<uint64_t> lost_ = 0;
  std::mutex names_mutex_;
  std::map<std::string, uint16_t, std::less<>> names_;
};

}  // namespace probed::kernel
