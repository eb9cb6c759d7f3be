#pragma once
// What a subscriber receives. Plain values; shared between threads only as const.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/lang/schema.h"

namespace probed::event {

using ProbeId = uint64_t;  // one accepted definition line in this daemon; never reused

// A process instance; a reused pid has another start time.
struct TargetId {
  int pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  auto operator<=>(const TargetId&) const = default;
};

struct HitRecord {
  uint64_t sequence = 0;  // daemon-wide, without holes before fan-out
  ProbeId probe = 0;
  TargetId target;  // the process that was hit (a followed child has its own)
  int tid = 0;
  std::array<char, 16> comm{};
  uint32_t cpu = 0;
  uint8_t flags = 0;  // of the kernel's events: common_flags and common_preempt_count
  uint8_t preempt_count = 0;
  uint64_t monotonic_ns = 0;  // both clocks are taken at the hit
  int64_t wall_ns = 0;
  lang::ProbeKind kind = lang::ProbeKind::kEntry;
  uint64_t ip = 0;        // entry: probed address; return: real return address
  uint64_t function = 0;  // return: address of the probed function
  std::shared_ptr<const lang::EventSchema> schema;
  std::vector<std::byte> payload;
};

// Something was recorded but this subscriber will not get it. Without sequence numbers: nobody
// does.
struct LossNotice {
  uint64_t lost = 0;
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t first_monotonic_ns = 0;
  uint64_t last_monotonic_ns = 0;
  uint64_t notices = 0;  // TargetNotices that went with them; not in `lost`

  bool empty() const { return lost == 0 && notices == 0; }
};

// Calls of a return probe that the program has left without a return (probe/unwound.h).
struct UnwoundNotice {
  ProbeId probe = 0;
  TargetId target;
  int tid = 0;  // 0: of several threads, or it is not known which
  uint64_t calls = 0;
  std::shared_ptr<const lang::EventSchema> schema;
};

enum class TargetChange : uint8_t {
  kAttached,
  kForked,
  kExecuted,
  kExited,
  kDetached,
  kSiteGone,  // code that is in no file has changed under a probe
};

struct TargetNotice {
  TargetId target;
  TargetId root;  // the target that was asked for
  TargetChange change = TargetChange::kAttached;
  int exit_status = 0;  // wait(2) status for kExited
  std::string detail;
};

using Item = std::variant<HitRecord, LossNotice, TargetNotice, UnwoundNotice>;

}  // namespace probed::event
