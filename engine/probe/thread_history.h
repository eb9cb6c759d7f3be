#pragma once
// Which thread a record is from: detours note the fs base, which is a thread's own for as long as
// it lives (its TLS block) and another's later. Times are time-stamp counters. Thread-safe.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace probed::probe {

class ThreadHistory {
 public:
  using Comm = std::array<char, 16>;
  struct Identity {
    pid_t tid = 0;
    Comm comm{};  // empty until Rename()
  };

  // From `tsc` on the base is that of `tid`, whoever had it before.
  void Begin(uint64_t base, pid_t tid, uint64_t tsc);
  // A child that shares its parent's base for a while (vfork): the parent, stopped meanwhile, has
  // it again afterwards.
  void Borrow(uint64_t base, pid_t tid, uint64_t tsc);
  void End(pid_t tid, uint64_t tsc);
  // Whoever has the base now.
  std::optional<pid_t> Owner(uint64_t base) const;

  // Nothing: nobody that we know of had it.
  std::optional<Identity> Find(uint64_t base, uint64_t tsc) const;
  // Whoever Find() answers.
  void Rename(uint64_t base, uint64_t tsc, const Comm& comm);
  // Nothing will be asked about times before `tsc` any more.
  void Prune(uint64_t tsc);
  // Threads that have ended and are remembered; if nothing is pruned, the latest of them.
  size_t ended() const;
  static constexpr size_t kMaxEnded = 1u << 14;

 private:
  struct Span {
    Identity identity;
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct Ended {
    uint64_t base = 0;
    uint64_t end = 0;
  };
  static constexpr uint64_t kOpen = ~uint64_t{0};

  void Open(uint64_t base, pid_t tid, uint64_t tsc);
  void Close(uint64_t base, Span& span, uint64_t tsc);
  void EndAt(uint64_t base, pid_t tid, uint64_t tsc);
  void ForgetEndedBefore(uint64_t tsc);

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<Span>> spans_;      // by base, in the order they began
  std::unordered_map<pid_t, std::vector<uint64_t>> bases_of_;  // of threads that live
  std::deque<Ended> ended_;                                    // in the order they were told
};

}  // namespace probed::probe
