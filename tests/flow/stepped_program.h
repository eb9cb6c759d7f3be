#pragma once
// A program that is run one instruction at a time, to see where control really goes.

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace probed::probe {

class SteppedProgram {
 public:
  // Stopped before its first instruction; null when it cannot be started. Output is discarded.
  static std::unique_ptr<SteppedProgram> Start(const std::vector<std::string>& command);
  ~SteppedProgram();
  SteppedProgram(const SteppedProgram&) = delete;
  SteppedProgram& operator=(const SteppedProgram&) = delete;

  pid_t pid() const { return pid_; }
  // Runs freely up to `address`, which must not have been passed. False when it is not reached.
  bool RunTo(uint64_t address);
  // False when it has ended.
  bool Step();
  uint64_t ip() const { return regs_.rip; }
  // Valid after Step returned false.
  int exit_status() const { return exit_status_; }

 private:
  explicit SteppedProgram(pid_t pid) : pid_(pid) {}
  bool Wait();

  pid_t pid_;
  user_regs_struct regs_{};
  int exit_status_ = -1;
  int signal_ = 0;  // to be delivered with the next step
};

}  // namespace probed::probe
