#include "client/stop_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "base/plural.h"

namespace probed::client {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStatusPeriod{1};

// What is done each second: the status line, and what the caller wants.
class Ticker {
 public:
  explicit Ticker(const StopOptions& options)
      : options_(options), next_(Clock::now() + kStatusPeriod) {}

  Clock::time_point next() const {
    return options_.status_line || options_.each_second ? next_ : Clock::time_point::max();
  }

  void Tick(const EventPump& pump, Talk& talk) {
    Clock::time_point now = Clock::now();
    if (now < next()) return;
    if (options_.status_line) ShowStatus(pump, talk, now - next_ + kStatusPeriod);
    if (options_.each_second) options_.each_second();
    next_ = now + kStatusPeriod;
  }

 private:
  void ShowStatus(const EventPump& pump, Talk& talk, std::chrono::duration<double> passed) {
    uint64_t hits = pump.hits();
    talk.SetStatus(fmt::format("{}, {:.0f}/s, {} lost", Plural(hits, "event"),
                               static_cast<double>(hits - last_hits_) / passed.count(),
                               pump.lost()));
    last_hits_ = hits;
  }

  const StopOptions& options_;
  Clock::time_point next_;
  uint64_t last_hits_ = 0;
};

// Why the pump has nothing more for us; none while it has.
std::optional<StopReason> PumpEnd(const EventPump& pump, bool wants_targets) {
  if (wants_targets && pump.all_gone()) {
    return pump.let_go() ? StopReason::kTargetsLetGo : StopReason::kTargetsEnded;
  }
  if (pump.stream_ended()) return StopReason::kStreamEnded;
  if (pump.done()) return StopReason::kDone;
  return std::nullopt;
}

void Wait(const EventPump* pump, Signals& signals, int other, int timeout) {
  pollfd fds[] = {{signals.fd(), POLLIN, 0},
                  {pump != nullptr ? pump->fd() : -1, POLLIN, 0},
                  {other, POLLIN, 0}};
  ::poll(fds, std::size(fds), timeout);
}

}  // namespace

int TimeoutUntil(Clock::time_point when) {
  if (when == Clock::time_point::max()) return -1;
  auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

Clock::time_point DurationEnd(double seconds) {
  if (seconds <= 0) return Clock::time_point::max();
  constexpr double kMostSeconds = 3e8;  // ten years: more would overflow the clock
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::min(seconds, kMostSeconds)));
}

bool TakeSignals(Signals& signals, Command* command) {
  bool interrupted = false;
  while (auto event = signals.Next()) {
    if (event->number == SIGCHLD) continue;
    if (command != nullptr && !event->from_terminal) command->Signal(event->number);
    interrupted = true;
  }
  return interrupted;
}

ExitCode ExitCodeOf(StopReason reason, Talk& talk) {
  if (reason == StopReason::kStreamEnded) {
    talk.Warn("the daemon ended the stream");
    return ExitCode::kConnect;
  }
  if (reason == StopReason::kTargetsLetGo) {
    talk.Warn("the target was let go by the daemon or by another client");
    return ExitCode::kFailure;
  }
  return ExitCode::kOk;
}

StopReason WaitForStop(EventPump& pump, Signals& signals, Talk& talk, const StopOptions& options) {
  Ticker ticker(options);
  const Clock::time_point end = DurationEnd(options.duration_seconds);
  const bool wants_targets = options.command == nullptr && !options.each_turn;
  while (true) {
    pump.ClearWake();
    if (TakeSignals(signals, options.command)) return StopReason::kInterrupted;
    if (options.command != nullptr && options.command->TryWait()) return StopReason::kCommandEnded;
    if (auto why = PumpEnd(pump, wants_targets)) return *why;
    if (options.each_turn) options.each_turn();
    if (Clock::now() >= end) return StopReason::kDuration;
    ticker.Tick(pump, talk);
    Wait(&pump, signals, options.turn_fd, TimeoutUntil(std::min(end, ticker.next())));
  }
}

std::optional<int> WaitForCommand(Command& command, Signals& signals, StopReason stopped_by) {
  bool interrupted = stopped_by == StopReason::kInterrupted;
  while (true) {
    bool again = TakeSignals(signals, &command);
    if (auto status = command.TryWait()) return status;
    if (again && interrupted) return std::nullopt;
    interrupted = interrupted || again;
    Wait(nullptr, signals, -1, -1);
  }
}

}  // namespace probed::client
