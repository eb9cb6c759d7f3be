#pragma once
// An observer that puts int3 on one-byte nops, counts the hits of each process, and remembers what
// else it was told.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/address.h"
#include "engine/tracee/tracer.h"

namespace probed::tracee {

class BreakpointObserver : public Observer {
 public:
  Resumption OnTrap(Stopped& stopped) override;
  Resumption OnSignal(Stopped& stopped, const siginfo_t& info) override;
  void OnThreadStart(Stopped& stopped) override;
  void OnThreadExit(Process& process, pid_t tid) override;
  ChildChoice OnFork(Process& parent, Process& child, Stopped& child_stopped) override;
  bool OnVfork(Process& parent, pid_t child) override;
  Resumption OnExec(Stopped& stopped) override;
  ChildChoice OnChildExec(Process& parent, Process& child, Stopped& child_stopped) override;
  Resumption OnSyscall(Stopped& stopped, bool is_exit) override;
  void OnExit(Process& process, int wait_status) override;

  // On the tracer thread. Every process is taken to have the nop at this place.
  Status Insert(Stopped& stopped, RemoteAddr nop);
  Status Remove(Stopped& stopped);

  uint64_t hits() const { return hits_.load(); }
  uint64_t hits_of(pid_t pid);
  // The words recorded so far ("exec 12", "exit 12 status 0", ...), and whether one is among them.
  std::vector<std::string> events();
  bool Saw(const std::string& event);
  int Count(const std::string& prefix);

  ChildChoice on_fork = ChildChoice::kRelease;
  bool follow_vfork = true;
  ChildChoice on_child_exec = ChildChoice::kFollow;
  std::function<void(Stopped&)> exec_hook;

 private:
  void Record(const std::string& event);

  RemoteAddr nop_;
  std::atomic<uint64_t> hits_ = 0;
  std::mutex mutex_;
  std::map<pid_t, uint64_t> hits_of_;
  std::vector<std::string> events_;
};

}  // namespace probed::tracee
