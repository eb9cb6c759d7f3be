#pragma once
// Which CPUs the calling thread may run on. sched_setaffinity(2).

#include <sched.h>

namespace probed::sys {

int CurrentCpu();

// Remembers where the thread that makes it may run, and puts that back.
class ThreadAffinity {
 public:
  ThreadAffinity();
  ThreadAffinity(const ThreadAffinity&) = delete;
  ThreadAffinity& operator=(const ThreadAffinity&) = delete;

  // Same thread. A CPU that the thread was never allowed is refused by doing nothing.
  void StayOn(int cpu) const;
  void Restore() const;

 private:
  cpu_set_t allowed_;
};

}  // namespace probed::sys
