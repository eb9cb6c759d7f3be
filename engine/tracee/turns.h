#pragma once
// Who goes on first where there are more stops than the tracer can deal with. Of several stops the
// kernel reports that of the thread that was traced last (kernel/ptrace.c, __ptrace_link), so
// threads that do nothing but hit breakpoints would keep those traced before them from ever going
// on. Therefore rounds: a thread that has been dealt with waits until no stop is left to report,
// or somebody wants it to go on. Every kInterval stops there is one, and one after the
// other while more than two threads wait in each. Tracer thread only.

#include <sys/types.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace probed::tracee {

class Turns {
 public:
  // Before each stop. Within a round stops are to be taken without a wait, and where there is none,
  // or enough of others have been dealt with, it is to be ended.
  bool in_round() const { return in_round_; }
  bool is_long() const { return stops_ > kLeastLong + kLong * waiting_.size(); }
  void CountStop();
  void Wait(pid_t tid) { waiting_.push_back(tid); }
  // Ends the round; who has waited is to go on.
  std::vector<pid_t> End();

 private:
  static constexpr size_t kInterval = 64;
  // One that the tracer works for and one that runs meanwhile need no turns.
  static constexpr size_t kFew = 2;
  // Stops in which nobody comes to wait (signals, steps) may follow each other without end.
  static constexpr size_t kLeastLong = 16, kLong = 4;

  bool in_round_ = false;
  size_t stops_ = 0;  // in this round, or since the last
  std::vector<pid_t> waiting_;
};

}  // namespace probed::tracee
