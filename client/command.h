#pragma once
// The program of `run`: our own child on our own terminal, so that job control and exit status are
// the shell's business as ever. It waits on a pipe, not in a stop, until it may become the program.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::client {

class Command {
 public:
  // Forks; call before this process has threads and before signals are blocked. `tracer` (0:
  // unknown) is let in past Yama's scope 1.
  static Result<Command> Fork(const std::vector<std::string>& words, pid_t tracer);
  Command(Command&&) noexcept;
  Command& operator=(Command&&) = delete;
  // A child that was never released goes away without having run anything.
  ~Command();

  pid_t pid() const { return pid_; }
  // Lets it become the program. CANNOT_EXECUTE or COMMAND_NOT_FOUND.
  Result<void> Release();
  // The wait(2) status once it has ended; does not wait.
  std::optional<int> TryWait();
  void Signal(int number);

 private:
  Command(std::string name, pid_t pid, UniqueFd go, UniqueFd outcome);

  std::string name_;  // for messages
  pid_t pid_;
  UniqueFd go_;       // a byte: exec; end of file: exit
  UniqueFd outcome_;  // errno of the exec; end of file: it worked
  std::optional<int> status_;
};

}  // namespace probed::client
