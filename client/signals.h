#pragma once
// Interrupts and ended children as something to poll. One per process, made before other threads,
// so that they inherit the blocked mask.

#include <optional>
#include <thread>

#include "base/unique_fd.h"

namespace probed::client {

class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }

  struct Event {
    int number = 0;
    // Typed at the terminal: everybody in the foreground has it already.
    bool from_terminal = false;
  };
  // The next one that has arrived; none when there is none. Does not wait.
  std::optional<Event> Next();

  // From now on an interrupt ends this process at once with ExitCode::kInterrupted: the user gave
  // up waiting for the clean-up.
  void LetInterruptsEndUs();

 private:
  UniqueFd fd_;
};

// The same for as long as this lives, and without touching the mask, which threads that start
// meanwhile inherit: there is nothing yet that needs us. Nobody else asks `signals` then.
class EndOnInterrupt {
 public:
  explicit EndOnInterrupt(Signals& signals);
  EndOnInterrupt(const EndOnInterrupt&) = delete;
  EndOnInterrupt& operator=(const EndOnInterrupt&) = delete;
  ~EndOnInterrupt();

 private:
  Signals& signals_;
  UniqueFd end_;
  std::thread thread_;
};

}  // namespace probed::client
