#include "engine/tracee/turns.h"

namespace probed::tracee {

void Turns::CountStop() {
  if (++stops_ < kInterval || in_round_) return;
  in_round_ = true;
  stops_ = 0;
}

std::vector<pid_t> Turns::End() {
  in_round_ = waiting_.size() > kFew;
  stops_ = 0;
  return std::exchange(waiting_, {});
}

}  // namespace probed::tracee
