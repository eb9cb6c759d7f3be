#include "engine/probe/controller.h"

#include <fmt/format.h>

#include <chrono>
#include <span>
#include <utility>

#include "engine/probe/detacher.h"
#include "engine/probe/fatal_signal.h"
#include "engine/probe/fork.h"
#include "engine/probe/generated_code.h"
#include "engine/probe/salvage.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/stop_deadline.h"
#include "engine/probe/trap_signal.h"
#include "engine/sys/proc.h"
#include "engine/tracee/remote_call.h"

namespace probed::probe {

using tracee::Resumption;

Controller::Controller(event::Hub& hub, FileCache& files, OptimizerOptions optimization,
                       std::shared_ptr<PatchJournal> patches, OnGone on_gone, OnNew on_new)
    : hub_(hub),
      drainer_(hub),
      patches_(std::move(patches)),
      optimizer_(std::move(optimization), files, hub, drainer_),
      watcher_(files),
      hits_(
          drainer_,
          [this](auto& stopped, auto& state, auto site) { RunHooks(stopped, state, site); },
          [this](auto& state, auto site, auto& why) { optimizer_.Bar(state, site, why); }),
      installer_(files, watcher_, hits_.returns(), optimizer_),
      on_gone_(std::move(on_gone)),
      on_new_(std::move(on_new)) {
  optimizer_.set_hits(&hits_);
}

void Controller::set_tracer(tracee::Tracer* tracer) {
  tracer_ = tracer;
  installer_.set_tracer(tracer);
  optimizer_.set_tracer(tracer);
}

ProcessState& Controller::MakeState(tracee::Process& process, std::shared_ptr<ProbeGroup> group) {
  auto state = std::make_unique<ProcessState>(process, std::move(group), patches_);
  ProcessState& made = *state;
  process.set_extension(std::move(state));
  made.executable = ExecutableOf(made.id.pid);
  made.on_site_gone = [this, &made](const Site& site) {
    Announce(made, event::TargetChange::kSiteGone, 0,
             fmt::format("{}:{:#x}: {}", site.place().module, site.address().value, site.reason()));
  };
  made.on_unwound = [this](const event::UnwoundNotice& unwound) { hub_.Publish(unwound); };
  return made;
}

// Behind every hit of the process: it has not recorded any yet, or its ring has been read and let
// go.
void Controller::Announce(const ProcessState& state, event::TargetChange change, int exit_status,
                          std::string detail) {
  hub_.Publish(event::TargetNotice{.target = state.id,
                                   .root = state.group->root,
                                   .change = change,
                                   .exit_status = exit_status,
                                   .detail = std::move(detail)});
}

std::shared_ptr<ProbeGroup> Controller::MakeGroup(const tracee::Process& process) {
  auto group = std::make_shared<ProbeGroup>();
  group->root = {.pid = process.pid(), .start_ticks = process.start_ticks()};
  group->follow_children = process.follow_children();
  return group;
}

// One that could not be looked at when it was attached to.
void Controller::Abandon(tracee::Process& process) {
  if (tracer_->Find(process.pid()) == &process) tracer_->GiveUp(process);
}

Result<ProcessState*> Controller::Adopt(tracee::Process& process) {
  ProcessState* state = ProcessState::Of(process);  // a launched program has one since its exec
  if (state == nullptr) {
    state = &MakeState(process, MakeGroup(process));
    auto look = [&](tracee::Stopped& stopped) -> Status {
      LookAtTrapAction(stopped, *state);
      watcher_.OnAttach(stopped, *state);
      return {};
    };
    for (const auto& [tid, thread] : process.threads())
      LookAtTrapMask(*thread);
    if (!process.awaiting_exec()) {
      Status looked = tracer_->WithOneStopped(process, kStopDeadline, look);
      if (!looked.ok()) {
        Abandon(process);
        return std::move(looked).error();
      }
    }
  }
  on_new_(*state);
  Announce(*state, event::TargetChange::kAttached, 0, state->executable);
  return state;
}

Result<DetachReport> Controller::Detach(ProcessState& state) {
  event::TargetNotice notice{.target = state.id,
                             .root = state.group->root,
                             .change = event::TargetChange::kDetached,
                             .exit_status = 0,
                             .detail = ""};
  auto leaving = [&] { on_gone_(state, event::TargetChange::kDetached); };
  PROBED_TRY(DetachReport report, Detacher(*tracer_, hits_, optimizer_).Detach(state, leaving));
  hub_.Publish(notice);
  return report;
}

// No thread enters the handler while it is traced; those that are in it leave by sigreturn, after
// three more calls if the signal was sent.
void Controller::LeaveHandler(tracee::Stopped& stopped, const ProcessState& state) {
  constexpr int kMostCalls = 8;
  for (int i = 0; i < kMostCalls && state.rescue.Contains(RemoteAddr{stopped.regs().rip}); ++i) {
    if (!tracee::RunThroughSyscall(stopped).ok()) return;  // it has been killed
  }
}

void Controller::Adopt(tracee::Process& process, const JournaledProcess& left) {
  ProcessState& state = MakeState(process, MakeGroup(process));
  state.leaving = true;
  state.salvaged = true;
  AdoptLeftovers(state, left);
  for (const auto& [tid, thread] : process.threads())
    LookAtTrapMask(*thread);
}

Result<DetachReport> Controller::Salvage(tracee::Process& process, const JournaledProcess& left) {
  Result<DetachReport> report = TrySalvage(process, left);
  // What stands in the process is looked at anew when it is tried again.
  if (!report.ok() && tracer_->Find(left.pid) == &process) process.set_extension(nullptr);
  return report;
}

Result<DetachReport> Controller::TrySalvage(tracee::Process& process,
                                            const JournaledProcess& left) {
  ProcessState& state = *ProcessState::Of(process);
  auto prepare = [&](std::vector<tracee::Stopped*>& threads) -> Status {
    if (threads.empty()) return {};
    for (tracee::Stopped* thread : threads)
      if (left.call) EndCall(*thread, *left.call);
    LookAtTrapAction(*threads.front(), state);
    PROBED_RETURN_IF_ERROR(UndoJumps(threads, state, left));
    for (tracee::Stopped* thread : threads) {
      LeaveHandler(*thread, state);
      CorrectInterrupted(*thread, state);
    }
    return {};
  };
  return Detacher(*tracer_, hits_, optimizer_, prepare).Detach(state, [] {});
}

void Controller::RunHooks(tracee::Stopped& stopped, ProcessState& state, RemoteAddr address) {
  Site* site = state.sites.Find(address);
  if (site == nullptr) return;
  if (site->HasHook(Hook::kUnwind)) hits_.returns().Lift(stopped, state);
  if (site->HasHook(Hook::kCatch)) hits_.returns().Relay(stopped, state);
  if (site->HasHook(Hook::kKeepsReturn)) hits_.returns().GiveUpTop(stopped, state);
  // Any of these may forget the site.
  const auto has = [&](Hook hook) {
    site = state.sites.Find(address);
    return site != nullptr && site->HasHook(hook);
  };
  bool is_changed = has(Hook::kModuleList) || has(Hook::kProgramEntry);
  if (has(Hook::kModuleList)) watcher_.Refresh(stopped, state);
  if (has(Hook::kMapped)) is_changed |= watcher_.OnMapped(stopped, state);
  if (has(Hook::kProtected)) is_changed |= watcher_.OnProtected(stopped, state);
  if (has(Hook::kUnmapped)) is_changed |= watcher_.OnUnmapped(stopped, state);
  if (has(Hook::kProgramEntry)) watcher_.OnProgramEntry(stopped, state, address);
  if (is_changed && !state.loading) optimizer_.Request(state.id);
}

Resumption Controller::OnTrap(tracee::Stopped& stopped) {
  ProcessState* state = ProcessState::Of(stopped.process());
  if (state == nullptr) return {.signal = SIGTRAP};
  const Resumption resumption = hits_.OnTrap(stopped, *state);
  if (WillDumpCore(stopped, *state, resumption.signal)) LiftReturns(stopped, *state);
  return resumption;
}

Resumption Controller::OnSignal(tracee::Stopped& stopped, const siginfo_t& info) {
  ProcessState* state = ProcessState::Of(stopped.process());
  if (state == nullptr) return {.signal = info.si_signo};
  const Resumption resumption = hits_.OnSignal(stopped, *state, info);
  if (WillDumpCore(stopped, *state, resumption.signal)) LiftReturns(stopped, *state);
  return resumption;
}

// Of the other threads, too, whose stacks are in the core file as well: once, however many of them
// are about to end the program.
void Controller::LiftReturns(tracee::Stopped& stopped, ProcessState& state) {
  hits_.returns().Lift(stopped, state);
  // One that only shares the memory, as a child of vfork(2), dies alone.
  if (stopped.thread().role() == tracee::Thread::Role::kMemorySharer) return;
  if (state.process.threads().size() == 1 || std::exchange(state.dumps_core, true)) return;
  auto lift = [&](std::span<tracee::Stopped* const> threads) -> Status {
    for (tracee::Stopped* thread : threads)
      if (thread->tid() != stopped.tid()) hits_.returns().Lift(*thread, state);
    return {};
  };
  (void)tracer_->WithAllStopped(state.process, kStopDeadline, lift);
  state.dumps_core = false;
}

void Controller::OnThreadStart(tracee::Stopped& stopped) {
  ProcessState* state = ProcessState::Of(stopped.process());
  if (state == nullptr) return;
  RestoreFullMask(stopped);
  LookAtTrapMask(stopped.thread());
  optimizer_.OnThreadStart(stopped, *state);
  hits_.LeaveOurCode(stopped, *state, /*fault=*/false);
}

void Controller::OnThreadEnding(tracee::Process& process, pid_t tid, const user_regs_struct& regs) {
  if (const ProcessState* state = ProcessState::Of(process)) NoteLastStack(*state, tid, regs);
}

void Controller::OnThreadExit(tracee::Process& process, pid_t tid) {
  ProcessState* state = ProcessState::Of(process);
  if (state == nullptr) return;
  ForgetThread(*state, tid);
  hits_.returns().HandOver(*state, tid);
  optimizer_.OnThreadExit(*state, tid);
}

tracee::ChildChoice Controller::OnFork(tracee::Process& parent, tracee::Process& child,
                                       tracee::Stopped& child_stopped) {
  ProcessState* state = ProcessState::Of(parent);
  if (state == nullptr) return tracee::ChildChoice::kRelease;
  optimizer_.Settle(*state);  // or the child would keep what nobody uses
  ProcessState& copy = MakeState(child, state->group);
  InheritState(*state, copy, child_stopped.thread());
  InheritFrames(child_stopped, copy, *state);
  RestoreFullMask(child_stopped);
  hits_.LeaveOurCode(child_stopped, copy, /*fault=*/false);
  bool follow = state->group->follow_children && !state->leaving;
  Detacher detacher(*tracer_, hits_, optimizer_);
  if (!follow && detacher.CleanFork(child_stopped, *state, copy).ok()) {
    return tracee::ChildChoice::kRelease;
  }
  optimizer_.OnFork(child_stopped, copy, *state);
  // One that cannot be made clean is followed too: alone it would die of our breakpoints.
  on_new_(copy);
  Announce(copy, event::TargetChange::kForked, 0, fmt::format("from {}", parent.pid()));
  return tracee::ChildChoice::kFollow;
}

// Nobody follows it. It waits at the first breakpoint of ours, sent back to it by our handler,
// until it is made clean as if its tracer had died.
bool Controller::OnStray(tracee::Process& parent, pid_t child) {
  constexpr std::chrono::milliseconds kDeadline{1000};
  const ProcessState* state = ProcessState::Of(parent);
  auto memory = sys::ProcessMemory::Open(child);
  auto stat = sys::ReadTaskStat(child);
  if (state == nullptr || !memory.ok() || !stat.ok()) return true;
  if (!state->rescue.StandsIn(*memory)) return true;
  JournaledProcess left = DescribeCopy(*state, child, stat->start_ticks);
  auto attached = tracer_->Attach({.pid = child, .deadline = kDeadline});
  if (!attached.ok()) return false;
  Adopt(**attached, left);
  if (Salvage(**attached, left).ok()) return true;
  Abandon(**attached);
  return false;
}

bool Controller::OnVfork(tracee::Process& parent, pid_t) {
  ProcessState* state = ProcessState::Of(parent);
  return state != nullptr && state->group->follow_children && !state->leaving;
}

void Controller::StartImage(tracee::Stopped& stopped, ProcessState& state) {
  RestoreFullMask(stopped);  // by what is known of the thread
  optimizer_.EndRing(state);
  LeaveGeneratedCode(state, "the process has executed another program");
  state.ForgetMemory();
  state.group->AwaitFilesAnew();
  state.image = ProcessState::NextImage();
  stopped.process().arena().Forget();
  state.executable = ExecutableOf(state.id.pid);
  // Handlers end with an exec; what is ignored stays so (execve(2)).
  IgnoreTrapsAgain(stopped, state);
  LookAtTrapAction(stopped, state);
  LookAtTrapMask(stopped.thread());
  watcher_.OnExec(stopped, state);
  if (!state.loading) optimizer_.Request(state.id);
}

Resumption Controller::OnExec(tracee::Stopped& stopped) {
  ProcessState* state = ProcessState::Of(stopped.process());
  bool known = state != nullptr;
  // A launched program execs before anybody could adopt it.
  if (!known) state = &MakeState(stopped.process(), MakeGroup(stopped.process()));
  StartImage(stopped, *state);
  if (known) Announce(*state, event::TargetChange::kExecuted, 0, state->executable);
  return {.how = state->HowToGoOn()};
}

tracee::ChildChoice Controller::OnChildExec(tracee::Process& parent, tracee::Process& child,
                                            tracee::Stopped& child_stopped) {
  ProcessState* state = ProcessState::Of(parent);
  if (state == nullptr || !state->group->follow_children || state->leaving) {
    return tracee::ChildChoice::kRelease;
  }
  ProcessState& made = MakeState(child, state->group);
  StartImage(child_stopped, made);
  on_new_(made);
  Announce(made, event::TargetChange::kForked, 0, fmt::format("from {}", parent.pid()));
  Announce(made, event::TargetChange::kExecuted, 0, made.executable);
  return tracee::ChildChoice::kFollow;
}

Resumption Controller::OnSyscall(tracee::Stopped& stopped, bool is_exit) {
  ProcessState* state = ProcessState::Of(stopped.process());
  if (state == nullptr) return {};
  if (state->loading && is_exit) watcher_.OnSyscallExit(stopped, *state);
  return {.how = state->HowToGoOn()};
}

void Controller::OnAbandon(tracee::Process& process) {
  ProcessState* state = ProcessState::Of(process);
  if (state == nullptr) return;
  RestoreRunning(*state);
  optimizer_.EndRing(*state);
}

void Controller::OnExit(tracee::Process& process, int wait_status) {
  ProcessState* state = ProcessState::Of(process);
  if (state == nullptr) return;
  optimizer_.EndRing(*state);
  on_gone_(*state, event::TargetChange::kExited);
  Announce(*state, event::TargetChange::kExited, wait_status, "");
}

}  // namespace probed::probe
