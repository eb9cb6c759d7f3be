#pragma once
// The one OS thread that makes ptrace calls and waits for stops.
// Other threads post tasks to it.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/tracee/attach.h"
#include "engine/tracee/launch.h"
#include "engine/tracee/observer.h"
#include "engine/tracee/process.h"
#include "engine/tracee/resumption.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

class Tracer {
 public:
  // Starts the thread. `observer` outlives the tracer.
  static Result<std::unique_ptr<Tracer>> Start(Observer& observer);
  ~Tracer();  // detaches what is left, joins

  // Runs `task` on the tracer thread and waits for it to return.
  void Call(const std::function<void()>& task);
  void Post(std::function<void()> task);
  bool OnTracerThread() const;
  pid_t tid() const;  // of the tracer thread

  // All below: tracer thread only (inside Call/Post or an Observer callback).

  // Seizes every task until no new one appears. Returns with the threads running.
  // Named errors: PROCESS_NOT_FOUND, YAMA_SCOPE, UID_MISMATCH, NOT_DUMPABLE, MISSING_CAPABILITY,
  // ALREADY_TRACED (metadata tracer_pid, tracer_comm), ALREADY_ATTACHED, KERNEL_THREAD, ZOMBIE,
  // SELF, ANCESTOR_TRACES_US, INIT, PROCESS_GONE, DEADLINE.
  Result<Process*> Attach(const AttachRequest& request);
  // Forked and stopped right after exec (OnExec has been called); Resume() lets it run. When exec
  // fails, OnExit is called for the process that came to nothing, and the error is EXEC_FAILED.
  Result<Process*> Launch(const LaunchRequest& request);
  void Resume(Process& process);
  // Stops every thread, calls `clean` with one of them, then detaches all. Threads with a pending
  // trap are shown to the observer first.
  Status Detach(Process& process, const std::function<Status(Stopped&)>& clean);
  // Lets go of a process in which there is nothing of ours; of threads that will not stop as soon
  // as they do.
  void GiveUp(Process& process);

  // Stops one thread of `process` (whichever is quickest; D-state threads are passed over), runs
  // `work`, resumes it. Enough to write memory and inject calls. Bounded by `deadline`.
  Status WithOneStopped(Process& process, std::chrono::milliseconds deadline,
                        const std::function<Status(Stopped&)>& work);
  // Stops all threads, runs `work` with all of them, resumes them. Pending traps are handled
  // before.
  Status WithAllStopped(Process& process, std::chrono::milliseconds deadline,
                        const std::function<Status(std::vector<Stopped*>&)>& work);

  Process* Find(pid_t pid) const;
  std::vector<Process*> processes() const;
  // How the tracer thread waits: "sleep", "spin 50us" or "follow", chosen by measurement while
  // stops come in. Any thread.
  std::string placement() const;

 private:
  struct State;
  explicit Tracer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace probed::tracee
