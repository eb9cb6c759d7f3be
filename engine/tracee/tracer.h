#pragma once
// The one OS thread that makes ptrace calls, and the one place that waits for stops.
// signalfd/eventfd + epoll with waitpid(-1, __WALL | __WNOTHREAD | WNOHANG); others post commands.

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/tracee/process.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

// How a thread goes on after a stop that was shown to the observer.
struct Resumption {
  enum class How : uint8_t { kContinue, kStep, kSyscall };
  How how = How::kContinue;
  int signal = 0;  // delivered on resume; 0 = swallowed
};

enum class ChildChoice : uint8_t {
  kFollow,   // becomes a Process of its own (its memory is a copy, patches included)
  kRelease,  // detached; the observer has made its bytes clean
};

// The layer above. Called on the tracer thread only; must not block.
class Observer {
 public:
  virtual ~Observer() = default;

  // A SIGTRAP signal-stop: int3 (si_code SI_KERNEL), finished step (TRAP_TRACE/TRAP_BRKPT), or the
  // program's own. Return signal = SIGTRAP to hand it to the program.
  virtual Resumption OnTrap(Stopped& stopped, const siginfo_t& info) = 0;
  // Any other signal about to be delivered; default delivers. The observer may move an ip that is
  // inside our code back to the original instruction first.
  virtual Resumption OnSignal(Stopped& stopped, const siginfo_t& info) = 0;
  // A new thread, before its first instruction.
  virtual void OnThreadStart(Stopped& stopped) = 0;
  virtual void OnThreadExit(Process& process, pid_t tid) = 0;
  // `child` is stopped before its first instruction and shares no memory with the parent (fork).
  virtual ChildChoice OnFork(Process& parent, Process& child, Stopped& child_stopped) = 0;
  // A vfork child shares the parent's memory, patches and all; it is followed until exec or exit.
  // Return false to have it released at exec instead of followed.
  virtual bool OnVfork(Process& parent, pid_t child) = 0;
  // After a successful exec: one thread, new image, old memory gone. Nothing of it has run yet.
  virtual Resumption OnExec(Stopped& stopped) = 0;
  // After an exec of a followed vfork child, likewise, for a Process that is new to the observer.
  virtual ChildChoice OnChildExec(Process& parent, Process& child, Stopped& child_stopped) = 0;
  // A syscall-stop, only when the thread was resumed with kSyscall. is_exit: the call has returned.
  virtual Resumption OnSyscall(Stopped& stopped, bool is_exit) = 0;
  // The whole process is gone (wait status). The Process dies after this call.
  virtual void OnExit(Process& process, int wait_status) = 0;
};

struct AttachRequest {
  pid_t pid = 0;
  bool follow_children = false;
  bool awaiting_exec = false;
  std::chrono::milliseconds deadline{5000};
};

struct LaunchRequest {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string working_directory;
  uid_t uid = 0;
  gid_t gid = 0;
  bool follow_children = true;
};

class Tracer {
 public:
  // Starts the thread. `observer` outlives the tracer.
  static Result<std::unique_ptr<Tracer>> Start(Observer& observer);
  ~Tracer();  // detaches what is left, joins

  // Runs `task` on the tracer thread and waits for it to return.
  void Call(const std::function<void()>& task);
  void Post(std::function<void()> task);
  bool OnTracerThread() const;

  // All below: tracer thread only (inside Call/Post or an Observer callback).

  // Seizes every task until no new one appears. Returns with the threads running.
  // Named errors: PROCESS_NOT_FOUND, PERMISSION_DENIED family (YAMA_SCOPE, UID_MISMATCH,
  // NOT_DUMPABLE, MISSING_CAPABILITY), ALREADY_TRACED (tracer pid and comm), KERNEL_THREAD, ZOMBIE,
  // SELF_OR_ANCESTOR, PROCESS_GONE, DEADLINE.
  Result<Process*> Attach(const AttachRequest& request);
  // Forked and stopped right after exec (OnExec has been called); Resume() lets it run.
  Result<Process*> Launch(const LaunchRequest& request);
  void Resume(Process& process);
  // Stops every thread, calls `clean` with one of them, then detaches all. Threads with a pending
  // trap are shown to the observer first.
  Status Detach(Process& process, const std::function<Status(Stopped&)>& clean);

  // Stops one thread of `process` (whichever is quickest; D-state threads are passed over), runs
  // `work`, resumes it. Enough to write memory and inject calls. Bounded by `deadline`.
  Status WithOneStopped(Process& process, std::chrono::milliseconds deadline,
                        const std::function<Status(Stopped&)>& work);
  // Stops all threads, runs `work` with all of them, resumes them. Pending traps are handled before.
  Status WithAllStopped(Process& process, std::chrono::milliseconds deadline,
                        const std::function<Status(std::vector<Stopped*>&)>& work);

  Process* Find(pid_t pid) const;
  std::vector<Process*> processes() const;
  std::string placement() const;  // "sleep", "spin 50us", ...: chosen by measurement

 private:
  struct State;
  explicit Tracer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace probed::tracee
