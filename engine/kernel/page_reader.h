#pragma once
// Reads the rings of a tracefs instance, page by page. One thread, but for lost().
//
// Every page is read whole and by one read(2); what is half full is given as far as it is
// committed. Which events were overwritten the kernel says in the first page behind them: how many,
// if the page had room for the number. If not, they are told by the ring's own counter of overruns,
// which the total then agrees with as soon as everything is read.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/kernel/cpu_pipes.h"
#include "engine/kernel/event_reader.h"
#include "engine/kernel/page.h"

namespace probed::kernel {

class PageReader final : public EventReader {
 public:
  // KERNEL_RING_REFUSED: no per_cpu/cpuN/trace_pipe_raw can be opened.
  static Result<std::unique_ptr<PageReader>> Open(const std::string& instance_directory);

  // RawRecord: `probe` is the event's id, `thread` the tid, `payload` the record. A damaged page is
  // left out, and counts as damaged().
  Status Drain(uint64_t max_bytes, const Sink& sink) override;
  // The kernel gives a page once: nothing can be counted before it is read.
  Status Scan(const ScanSink& sink) override;
  Status DrainRest(const Sink& sink) override;

  uint32_t cpu_count() const override { return static_cast<uint32_t>(cpus_.size()); }
  uint32_t cpu_number(uint32_t index) const override { return cpus_[index].pipe.number; }
  uint64_t backlog() const override;  // known only to be more than a drain's, or nothing
  bool AllRead(uint32_t cpu) const override { return cpus_[cpu].all_read; }
  bool Blocked(uint32_t) const override { return false; }  // what is not committed is not shown
  void ReleasePages() override {}
  Status Learn(uint16_t, const std::string&) override { return {}; }  // records have ids
  void Forget(uint16_t) override {}

  uint64_t lost() const override { return lost_.load(std::memory_order_relaxed); }
  uint64_t damaged() const { return damaged_.load(std::memory_order_relaxed); }

 private:
  struct Cpu {
    CpuPipe pipe;
    uint64_t told = 0;       // overruns that readers know of
    bool estimated = false;  // some of them by the counter
    uint64_t untold = 0;     // a page without events said so
    bool all_read = true;
  };
  explicit PageReader(size_t page_bytes) : page_(page_bytes) {}
  Result<size_t> ReadPage(const Cpu& cpu);  // 0: there is none
  Status DrainCpu(uint32_t index, uint64_t max_bytes, const Sink& sink);
  void Deliver(uint32_t index, std::span<const std::byte> bytes, const Sink& sink);
  uint64_t TakeLoss(Cpu& cpu, const PageLoss& loss);

  std::vector<Cpu> cpus_;
  uint64_t max_bytes_ = 0;  // of the last drain
  std::vector<std::byte> page_;
  std::atomic<uint64_t> lost_ = 0;
  std::atomic<uint64_t> damaged_ = 0;
};

}  // namespace probed::kernel
