#pragma once
// One traced thread. Owned by its Process; tracer thread only.

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <memory>
#include <string>

#include "engine/tracee/process.h"

namespace probed::tracee {

class Thread {
 public:
  pid_t tid() const { return tid_; }
  Process& process() const { return process_; }
  Extension* extension() const { return extension_.get(); }
  void set_extension(std::unique_ptr<Extension> extension) { extension_ = std::move(extension); }

 private:
  friend class Tracer;
  friend class Stopped;
  friend class Process;
  Thread(Process& process, pid_t tid) : process_(process), tid_(tid) {}
  enum class RunState : uint8_t { kRunning, kStopped, kGroupStop, kGone };
  Process& process_;
  pid_t tid_;
  RunState run_state_ = RunState::kRunning;
  bool regs_valid_ = false;
  bool regs_dirty_ = false;
  user_regs_struct regs_{};
  std::unique_ptr<Extension> extension_;
};

}  // namespace probed::tracee
