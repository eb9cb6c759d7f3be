#include "engine/tracee/tracer.h"

#include <future>
#include <thread>

#include "base/clock.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"
#include "engine/tracee/deadline.h"
#include "engine/tracee/dispatcher.h"
#include "engine/tracee/launch.h"
#include "engine/tracee/quiesce.h"
#include "engine/tracee/registry.h"
#include "engine/tracee/stop_source.h"
#include "engine/tracee/stray_watch.h"
#include "engine/tracee/task_queue.h"

namespace probed::tracee {
namespace {

constexpr std::chrono::milliseconds kDetachDeadline{5000};

}  // namespace

struct Tracer::State {
  explicit State(Observer& an_observer)
      : observer(an_observer), dispatcher(registry, stops, turns, an_observer) {}

  void Run();
  void OnEnding(pid_t task);
  bool TakeStray(pid_t task);
  void TakeStrays(const std::vector<pid_t>& found);

  Observer& observer;
  Registry registry;
  StopSource stops;
  Turns turns;
  Dispatcher dispatcher;
  Quiescer quiescer{registry, stops, turns, dispatcher};
  Attacher attacher{registry, stops, quiescer};
  Launcher launcher{registry, attacher, quiescer};
  TaskQueue tasks;
  std::atomic<bool> quit = false;
  pid_t tid = 0;
  std::thread thread;
  StrayWatch strays;
};

void Tracer::State::OnEnding(pid_t task) {
  Thread* ending = registry.FindThread(task);
  user_regs_struct regs{};
  if (ending == nullptr || !sys::GetRegs(task, regs).ok()) return;
  observer.OnThreadEnding(ending->process(), task, regs);
}

// Its process is the one whose task has made it, or whose thread it is. False: it is to be tried
// again.
bool Tracer::State::TakeStray(pid_t task) {
  if (const Stray found = LookAtStray(tid, task); found != Stray::kFree)
    return found == Stray::kNone;
  auto status = sys::ReadTaskStatus(task);
  if (!status.ok()) return true;
  if (Process* process = registry.FindProcess(status->tgid)) {
    return attacher.TakeStray(*process, task, Thread::Role::kThread);
  }
  Thread* maker = registry.FindThread(status->parent_pid);
  if (maker == nullptr) return true;
  if (sys::SharesMemory(maker->tid(), task) == sys::Sharing::kYes) {
    return attacher.TakeStray(maker->process(), task, Thread::Role::kMemorySharer);
  }
  return observer.OnStray(maker->process(), task);
}

void Tracer::State::TakeStrays(const std::vector<pid_t>& found) {
  for (pid_t task : found)
    if (!TakeStray(task)) strays.TryLater(task);
}

void Tracer::State::Run() {
  while (!quit.load()) {
    tasks.RunAll();
    if (quit.load()) return;
    strays.SetWanted(registry.has_processes());
    quiescer.Pump(/*deadline_ns=*/0);
    registry.BuryDead();
  }
}

Tracer::Tracer(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Tracer>> Tracer::Start(Observer& observer) {
  auto state = std::make_unique<State>(observer);
  std::promise<Status> started;
  State* running = state.get();
  state->thread = std::thread([running, &started] {
    running->tid = sys::CurrentTid();
    running->stops.set_on_ending([running](pid_t task) { running->OnEnding(task); });
    Status status = running->stops.Start();
    bool ok = status.ok();
    if (ok) {
      running->strays.Start(running->tid, [running](const std::vector<pid_t>& found) {
        running->tasks.Add([running, found] { running->TakeStrays(found); });
        running->stops.Wake();
      });
    }
    started.set_value(std::move(status));
    if (ok) running->Run();
  });
  Status status = started.get_future().get();
  if (!status.ok()) {
    state->thread.join();
    return std::move(status).error();
  }
  return std::unique_ptr<Tracer>(new Tracer(std::move(state)));
}

Tracer::~Tracer() {
  Call([this] {
    for (Process* process : processes()) {
      // Before the threads stop as well: none might.
      state_->observer.OnAbandon(*process);
      auto abandon = [&](Stopped&) -> Status {
        state_->observer.OnAbandon(*process);
        return {};
      };
      if (!Detach(*process, abandon).ok()) state_->attacher.GiveUp(*process);
    }
    state_->quit.store(true);
  });
  state_->thread.join();
}

void Tracer::Call(const std::function<void()>& task) {
  if (OnTracerThread()) return task();
  std::promise<void> done;
  Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void Tracer::Post(std::function<void()> task) {
  state_->tasks.Add(std::move(task));
  state_->stops.Wake();
}

bool Tracer::OnTracerThread() const {
  return std::this_thread::get_id() == state_->thread.get_id();
}

pid_t Tracer::tid() const {
  return state_->tid;
}

// What has begun before there were tracees is nobody's stray.
Result<Process*> Tracer::Attach(const AttachRequest& request) {
  state_->strays.SetWanted(true);
  return state_->attacher.Attach(request);
}

Result<Process*> Tracer::Launch(const LaunchRequest& request) {
  state_->strays.SetWanted(true);
  return state_->launcher.Launch(request);
}

void Tracer::Resume(Process& process) {
  if (process.held()) state_->quiescer.ReleaseAll(process);
}

Status Tracer::Detach(Process& process, const std::function<Status(Stopped&)>& clean) {
  uint64_t deadline_ns = DeadlineAfter(kDetachDeadline);
  state_->TakeStrays(state_->strays.Look());
  PROBED_RETURN_IF_ERROR(state_->quiescer.StopAll(process, deadline_ns));
  Result<Thread*> thread = state_->quiescer.StopOne(process, deadline_ns);
  Status cleaned;
  if (thread.ok()) {
    Stopped token = (*thread)->Token();
    cleaned = clean(token);
  } else {
    cleaned = std::move(thread).error();
  }
  if (cleaned.ok()) {
    state_->attacher.LeaveStopped(process);
  } else {
    // Better traced than left with bytes of ours that nobody handles.
    state_->quiescer.ReleaseAll(process);
  }
  return cleaned;
}

void Tracer::GiveUp(Process& process) {
  state_->attacher.GiveUp(process);
}

Status Tracer::WithOneStopped(Process& process, std::chrono::milliseconds deadline,
                              const std::function<Status(Stopped&)>& work) {
  PROBED_TRY(Thread * thread, state_->quiescer.StopOne(process, DeadlineAfter(deadline)));
  Stopped token = thread->Token();
  Status status = work(token);
  state_->quiescer.ReleaseOne(*thread);
  return status;
}

Status Tracer::WithAllStopped(Process& process, std::chrono::milliseconds deadline,
                              const std::function<Status(std::vector<Stopped*>&)>& work) {
  PROBED_RETURN_IF_ERROR(state_->quiescer.StopAll(process, DeadlineAfter(deadline)));
  std::vector<std::unique_ptr<Stopped>> tokens;
  std::vector<Stopped*> pointers;
  for (const auto& [tid, thread] : process.threads()) {
    if (!thread->stopped()) continue;
    tokens.push_back(thread->NewToken());
    pointers.push_back(tokens.back().get());
  }
  Status status = work(pointers);
  state_->quiescer.ReleaseAll(process);
  return status;
}

Process* Tracer::Find(pid_t pid) const {
  return state_->registry.FindProcess(pid);
}
std::vector<Process*> Tracer::processes() const {
  return state_->registry.processes();
}
std::string Tracer::placement() const {
  return state_->stops.placement().Describe();
}

}  // namespace probed::tracee
