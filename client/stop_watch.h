#pragma once
// Waits until there is a reason to stop watching, and keeps the status line alive meanwhile.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "client/command.h"
#include "client/event_pump.h"
#include "client/signals.h"
#include "client/talk.h"

namespace probed::client {

enum class StopReason : uint8_t {
  kInterrupted,
  kDuration,
  kDone,         // the count was reached, or the reader of our output went away
  kStreamEnded,  // not our doing
  kTargetsEnded,
  kTargetsLetGo,  // not our doing
  kCommandEnded,
};

struct StopOptions {
  double duration_seconds = 0;  // 0: no limit
  bool status_line = true;
  // `run`: its end is a reason, and signals sent to us alone are passed on to it.
  Command* command = nullptr;
  // Targets may come, so the end of all is no reason: done each turn, which comes when the pump has
  // news or this is readable.
  std::function<void()> each_turn = nullptr;
  int turn_fd = -1;
  std::function<void()> each_second = nullptr;
};

// When so many seconds have passed; 0: never.
std::chrono::steady_clock::time_point DurationEnd(double seconds);
// Until then, for poll(2): at most an hour, and -1 for "never".
int TimeoutUntil(std::chrono::steady_clock::time_point when);

// True when an interrupt was among the signals that arrived. `command` (may be null) gets those
// that it has not had.
bool TakeSignals(Signals& signals, Command* command);

// The exit code for a watch that ended this way and was cleaned up; says what was unexpected.
ExitCode ExitCodeOf(StopReason reason, Talk& talk);

StopReason WaitForStop(EventPump& pump, Signals& signals, Talk& talk, const StopOptions& options);

// After the stop: waits for the command's end and returns its wait(2) status. None when the user
// gave up waiting, which takes two interrupts in all.
std::optional<int> WaitForCommand(Command& command, Signals& signals, StopReason stopped_by);

}  // namespace probed::client
