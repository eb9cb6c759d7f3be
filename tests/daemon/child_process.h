#pragma once
// A program under test, with a pipe to its input and one from its output.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace probed::daemon {

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> environment;  // added to ours
    int inherit_fd = -1;                   // stays open in the child under the same number
  };
  explicit ChildProcess(const std::vector<std::string>& argv) : ChildProcess(argv, Options()) {}
  ChildProcess(const std::vector<std::string>& argv, const Options& options);
  ~ChildProcess();  // kills it if it still runs

  pid_t pid() const { return pid_; }
  bool running() const { return pid_ > 0; }  // as far as Wait() has seen
  void Say(const std::string& line);
  // The next line of output; empty after 20 seconds or at the end.
  std::string ReadLine();
  void Signal(int signal);
  // wait(2) status; -1 when it did not end within 20 seconds.
  int Wait();

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd input_;
  UniqueFd output_;
  std::string buffer_;
};

// A number of /proc/PID/status, such as "TracerPid" or "VmRSS" (KiB); -1 when there is none.
long ProcNumber(pid_t pid, const std::string& field);
// The process that traces `pid` (the kernel names the tracing thread); 0 when nobody does.
pid_t TracerOf(pid_t pid);

}  // namespace probed::daemon
