#pragma once
// A small program under test, spoken to over pipes. Killed and reaped on destruction.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace probed::engine {

class Puppet {
 public:
  // Starts PUPPETS/`name` and waits for its first line, "ready".
  explicit Puppet(const std::string& name, std::vector<std::string> arguments = {});
  ~Puppet();
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;

  static std::string Path(const std::string& name);

  pid_t pid() const { return pid_; }
  const std::string& path() const { return path_; }
  void Send(const std::string& line);
  // The next line without its newline; empty at end of file or after the deadline.
  std::string ReadLine(std::chrono::milliseconds deadline = std::chrono::seconds(60));
  std::string Ask(const std::string& line) {
    Send(line);
    return ReadLine();
  }
  void CloseInput() { input_.Reset(); }
  // A tracer in the same process as the parent takes the status with it (wait_task_zombie).
  static constexpr int kReapedByTracer = -2;
  // wait(2) status; -1 after the deadline.
  int Wait(std::chrono::milliseconds deadline = std::chrono::seconds(20));

 private:
  std::string path_;
  pid_t pid_ = -1;
  bool reaped_ = false;
  UniqueFd process_;  // pidfd
  UniqueFd input_, output_;
  std::string pending_;
};

}  // namespace probed::engine
