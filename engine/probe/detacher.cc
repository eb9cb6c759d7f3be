#include "engine/probe/detacher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "engine/probe/generated_code.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/stop_deadline.h"
#include "engine/probe/trap_signal.h"
#include "engine/probe/unmapped.h"

namespace probed::probe {

uint32_t CountListed(const Site& site) {
  uint32_t count = 0;
  for (const auto kind : {lang::ProbeKind::kEntry, lang::ProbeKind::kReturn})
    count += std::any_of(site.probes().begin(), site.probes().end(),
                         [kind](const auto& probe) { return probe->definition->kind == kind; });
  return count;
}

namespace {

constexpr std::byte kBreakpoint{kBreakpointByte};

void AddWarning(DetachReport& report, const std::string& text) {
  if (!report.warning.empty()) report.warning += "; ";
  report.warning += text;
}

std::byte OriginalByte(const Site& site) {
  return std::byte{site.instruction().bytes[0]};
}

struct Restored {
  Site* site;
  bool was_armed;
};

using Jumps = std::vector<std::shared_ptr<const Optimization>>;

std::string OtherBytes(RemoteAddr address) {
  return fmt::format("the bytes at {:#x} are not the program's own", address.value);
}

// The original bytes, read back from the process. An error may also mean that the program has put
// something else there.
void VerifySites(tracee::Stopped& stopped, const ProcessState& state,
                 std::span<const Restored> restored, DetachReport& report) {
  tracee::CodeMemory code(stopped);
  for (auto [site, was_armed] : restored) {
    Status verified = site->Verify(code);
    if (!verified.ok()) {
      AddWarning(report, verified.error().message);
      continue;
    }
    if (was_armed) report.sites_restored += state.salvaged ? 1 : CountListed(*site);
    ++report.bytes_verified;
  }
}

// After this no thread of the process can enter our code any more. Fails when a byte of ours has to
// stay: its traps must go on being handled.
Status RestoreSites(tracee::Stopped& stopped, HitHandler& hits, ProcessState& state,
                    DetachReport& report) {
  Status result;
  std::vector<Restored> restored;
  LookAtGeneratedCode(state, stopped.tid());
  tracee::CodeMemory code(stopped);
  for (Site* site : state.sites.Sorted()) {
    if (site->gone()) continue;
    bool was_armed = site->armed();
    Status disarmed = site->Disarm(code);
    if (disarmed.ok()) {
      restored.push_back({site, was_armed});
    } else if (site->armed()) {
      result = std::move(disarmed);
    } else {
      AddWarning(report, disarmed.error().message);
    }
  }
  code.Flush();
  VerifySites(stopped, state, restored, report);
  report.returns_restored += hits.returns().RestoreAll(stopped, state);
  // Where the program begins is not watched any more.
  state.loading = false;
  return result;
}

// Under seccomp our memory stays where it is: nothing of the program leads there.
Status ReleaseMemory(tracee::Stopped& stopped, ProcessState& state, const TargetRing* ring) {
  if (state.salvaged) return {};
  Status released = ring != nullptr ? ring->Unmap(stopped) : Status();
  if (released.ok() && state.rescue.may_be_saved()) return state.rescue.Abandon(stopped);
  if (released.ok()) {
    state.routines = {};
    released = state.process.arena().Release(stopped);
  }
  return !released.ok() && released.error().reason == "SECCOMP_ACTIVE" ? Status() : released;
}

// A thread in uninterruptible sleep is in a system call, perhaps one that a copy of ours makes. It
// leaves us, and our memory to the process, when it wakes. Whether there are any.
bool WarnOfSleepers(size_t count, DetachReport& report) {
  if (count == 0) return false;
  AddWarning(report,
             fmt::format("threads in uninterruptible sleep, let go when they wake: {}", count));
  return true;
}

// Behind the breakpoint, whose byte is restored and verified with the others'.
void VerifyJumps(tracee::Stopped& stopped, const Jumps& jumps, DetachReport& report) {
  tracee::CodeMemory code(stopped);
  for (const auto& jump : jumps) {
    for (const CodePatch& patch : jump->patches) {
      if (!code.Holds(patch.address, patch.original)) {
        AddWarning(report, OtherBytes(patch.address));
      }
      report.bytes_verified += static_cast<uint32_t>(patch.original.size()) - 1;
    }
  }
}

// An exec came between, of the thread that worked for us or of another: there is a new image, in
// which nothing is armed, to let go of.
bool MayTryAgain(const tracee::Tracer& tracer, const ProcessState& state, const Error& error) {
  bool interrupted = error.reason == "PROGRAM_REPLACED" || error.reason == "PROCESS_GONE";
  return interrupted && tracer.Find(state.id.pid) == &state.process;
}

}  // namespace

// Sites are breakpoints again; fails when one cannot be: its detour must stay.
Status Detacher::RestoreAll(std::vector<tracee::Stopped*>& threads, ProcessState& state,
                            DetachReport& report) {
  ForgetUnmapped(state);
  std::vector<Site*> optimized = state.sites.Optimized();
  Jumps jumps;
  for (const Site* site : optimized)
    jumps.push_back(site->optimization());
  Status undone = optimizer_.Unoptimize(threads, state, optimized);
  if (!state.sites.Optimized().empty()) return undone;
  if (!undone.ok()) AddWarning(report, undone.error().message);
  for (auto* thread : threads) {
    hits_.LeaveOurCode(*thread, state, /*fault=*/false);
    HitHandler::ReleaseSignals(*thread);
    RestoreBlockOfLeft(*thread, state);
  }
  TakeOverAllFrames(state);  // of sites that were unmapped before they were undone
  PROBED_RETURN_IF_ERROR(RestoreSites(*threads.front(), hits_, state, report));
  VerifyJumps(*threads.front(), jumps, report);
  return {};
}

Status Detacher::Clean(tracee::Stopped& stopped, ProcessState& state, DetachReport& report) {
  bool may_be_inside = false;
  auto leave = [&](std::vector<tracee::Stopped*>& threads) -> Status {
    if (Prepare prepare = std::exchange(prepare_, {})) PROBED_RETURN_IF_ERROR(prepare(threads));
    may_be_inside = WarnOfSleepers(state.process.threads().size() - threads.size(), report);
    Status restored = RestoreAll(threads, state, report);
    // The program's own action must not see our traps, and our memory goes as well.
    for (auto* thread : threads)
      thread->Settle();
    return restored;
  };
  // All are stopped already, and stay so: this names them.
  PROBED_RETURN_IF_ERROR(tracer_.WithAllStopped(state.process, kStopDeadline, leave));
  IgnoreTrapsAgain(stopped, state);
  RemoveRescue(stopped, state);
  return may_be_inside ? Status() : ReleaseMemory(stopped, state, state.ring.get());
}

Result<DetachReport> Detacher::TryDetach(ProcessState& state,
                                         const std::function<void()>& leaving) {
  DetachReport report;
  // In the one stop in which the threads are let go of as well: what runs in between could arm.
  auto clean = [&](tracee::Stopped& stopped) -> Status {
    PROBED_RETURN_IF_ERROR(Clean(stopped, state, report));
    optimizer_.EndRing(state);
    leaving();
    return {};
  };
  PROBED_RETURN_IF_ERROR(tracer_.Detach(state.process, clean));
  return report;
}

Result<DetachReport> Detacher::Detach(ProcessState& state, const std::function<void()>& leaving) {
  constexpr int kMaxAttempts = 5;
  state.leaving = true;
  Result<DetachReport> report = TryDetach(state, leaving);
  for (int i = 1; i < kMaxAttempts && !report.ok(); ++i) {
    if (!MayTryAgain(tracer_, state, report.error())) break;
    report = TryDetach(state, leaving);
  }
  if (!report.ok()) {  // it stays a target
    state.leaving = false;
    optimizer_.SyncModes(state);
  }
  return report;
}

Result<DetachReport> Detacher::CleanFork(tracee::Stopped& stopped, const ProcessState& parent,
                                         ProcessState& state) {
  DetachReport report;
  std::vector<tracee::Stopped*> threads{&stopped};
  PROBED_RETURN_IF_ERROR(RestoreAll(threads, state, report));
  IgnoreTrapsAgain(stopped, state);
  RemoveRescue(stopped, state);
  Status released = ReleaseMemory(stopped, state, parent.ring.get());
  if (!released.ok()) AddWarning(report, released.error().message);
  return report;
}

void RestoreRunning(ProcessState& state) {
  state.leaving = true;
  LookAtGeneratedCode(state, std::nullopt);
  const sys::ProcessMemory& memory = state.process.memory();
  auto replace = [&](RemoteAddr address, std::span<const std::byte> ours,
                     std::span<const std::byte> original) {
    std::array<std::byte, sizeof(uint64_t)> buffer{};
    auto present = std::span(buffer).first(ours.size());
    if (!memory.Read(address, present).ok()) return;
    if (std::memcmp(present.data(), ours.data(), ours.size()) != 0) return;
    (void)memory.Write(address, original, state.id.pid);
  };
  for (Site* site : state.sites.Sorted()) {
    if (!site->armed() || site->optimization()) continue;
    std::byte original = OriginalByte(*site);
    replace(site->address(), {&kBreakpoint, 1}, {&original, 1});
    site->ForgetPatch();
  }
  for (const auto& [tid, thread] : state.process.threads()) {
    for (const auto& frame : ThreadState::Of(*thread).returns.frames()) {
      replace(RemoteAddr{frame.slot}, std::as_bytes(std::span(&frame.trampoline, 1)),
              std::as_bytes(std::span(&frame.real_return, 1)));
    }
  }
}

}  // namespace probed::probe
