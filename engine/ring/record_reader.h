#pragma once
// What reads one record ring for each CPU, whoever writes them: a target (reader.h) or the kernel.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"

namespace probed::ring {

// One record as read; `payload` is a copy's view that is valid during the callback only.
struct RawRecord {
  bool scanned = false;  // a Scan has named it already
  uint32_t cpu = 0;
  uint32_t probe = 0;  // below kMaxProbes, nothing else is known about it
  uint64_t tsc = 0;
  uint64_t thread = 0;  // what the writer knows threads by: fs base, or tid
  uint64_t lost = 0;    // records that this CPU's ring has overwritten right before
  std::span<const std::byte> payload;
};

// One thread.
class RecordReader {
 public:
  using Sink = std::function<void(const RawRecord&)>;
  using ScanSink = std::function<void(uint32_t probe)>;

  virtual ~RecordReader() = default;

  // Hands over every record that is committed now, CPU by CPU, each CPU's in order, about
  // `max_bytes` of each ring at most (and at least one record). An error: nothing more may be read,
  // and every later call says the same.
  virtual Status Drain(uint64_t max_bytes, const Sink& sink) = 0;
  // Calls `sink` with the probe of every committed record that no earlier call has named, as far as
  // it can see; publishes nothing and gives nothing back.
  virtual Status Scan(const ScanSink& sink) = 0;
  // Nobody writes any more: hands over all that is left.
  virtual Status DrainRest(const Sink& sink) = 0;

  virtual uint32_t cpu_count() const = 0;
  // Bytes not yet read, over all rings; a hint for how often to poll.
  virtual uint64_t backlog() const = 0;
  // Whether the last drain has read all that was reserved on this CPU when it began. If not, a
  // record that is still being written stands before others, or `max_bytes` was reached.
  virtual bool AllRead(uint32_t cpu) const = 0;
  // Whether it was the former.
  virtual bool Blocked(uint32_t cpu) const = 0;
  // Returns to the system the memory that bursts have used.
  virtual void ReleasePages() = 0;
};

}  // namespace probed::ring
