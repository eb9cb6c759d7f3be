#include "engine/sys/affinity.h"

namespace probed::sys {

int CurrentCpu() {
  return ::sched_getcpu();
}

ThreadAffinity::ThreadAffinity() {
  if (::sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) CPU_ZERO(&allowed_);
}

void ThreadAffinity::StayOn(int cpu) const {
  if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed_)) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

void ThreadAffinity::Restore() const {
  ::sched_setaffinity(0, sizeof allowed_, &allowed_);
}

}  // namespace probed::sys
