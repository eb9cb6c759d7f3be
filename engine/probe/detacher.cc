#include "engine/probe/detacher.h"

#include <chrono>
#include <utility>

#include "engine/probe/trap_signal.h"

namespace probed::probe {
namespace {

constexpr std::chrono::milliseconds kStopDeadline{5000};

void Warn(DetachReport& report, const Error& error) {
  if (!report.warning.empty()) report.warning += "; ";
  report.warning += error.message;
}

// After this no thread of the process can enter our code any more.
void DisarmAll(tracee::Stopped& stopped, HitHandler& hits, ProcessState& state,
               DetachReport& report) {
  for (Site* site : state.sites.Sorted()) {
    if (!site->armed()) continue;
    Status disarmed = site->Disarm(stopped);
    if (disarmed.ok()) {
      ++report.sites_restored;
    } else {
      Warn(report, disarmed.error());
    }
  }
  report.returns_restored = hits.returns().RestoreAll(stopped, state);
}

void VerifyAll(tracee::Stopped& stopped, ProcessState& state, DetachReport& report) {
  for (Site* site : state.sites.Sorted()) {
    Status verified = site->Verify(stopped);
    if (verified.ok()) {
      ++report.bytes_verified;
    } else {
      Warn(report, verified.error());
    }
  }
}

}  // namespace

Result<DetachReport> DetachClean(tracee::Tracer& tracer, HitHandler& hits, ProcessState& state,
                                 const std::function<void()>& leaving) {
  DetachReport report;
  auto leave = [&](std::vector<tracee::Stopped*>& threads) -> Status {
    for (auto* stopped : threads)
      hits.LeaveOurCode(*stopped, state, /*fault=*/false);
    if (!threads.empty()) DisarmAll(*threads.front(), hits, state, report);
    return {};
  };
  PROBED_RETURN_IF_ERROR(tracer.WithAllStopped(state.process, kStopDeadline, leave));
  auto release = [&](tracee::Stopped& stopped) -> Status {
    VerifyAll(stopped, state, report);
    IgnoreTrapsAgain(stopped, state);
    leaving();
    return state.process.arena().Release(stopped);
  };
  PROBED_RETURN_IF_ERROR(tracer.Detach(state.process, release));
  return report;
}

DetachReport CleanFork(tracee::Stopped& stopped, HitHandler& hits, ProcessState& state) {
  DetachReport report;
  DisarmAll(stopped, hits, state, report);
  VerifyAll(stopped, state, report);
  IgnoreTrapsAgain(stopped, state);
  Status released = state.process.arena().Release(stopped);
  if (!released.ok()) Warn(report, released.error());
  return report;
}

}  // namespace probed::probe
