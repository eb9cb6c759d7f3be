#include "tests/tracee/breakpoint_observer.h"

#include <algorithm>
#include <array>

#include "engine/tracee/thread.h"

namespace probed::tracee {
namespace {

constexpr std::array<std::byte, 1> kInt3 = {std::byte{0xcc}};
constexpr std::array<std::byte, 1> kNop = {std::byte{0x90}};

std::string Number(int64_t value) {
  return std::to_string(value);
}

}  // namespace

Resumption BreakpointObserver::OnTrap(Stopped& stopped) {
  const siginfo_t& info = stopped.signal_info();
  bool is_int3 = info.si_code == SI_KERNEL && stopped.regs().rip == nop_.value + 1;
  if (!is_int3) {
    Record("trap " + Number(info.si_code));
    return {.signal = SIGTRAP};
  }
  hits_.fetch_add(1);
  std::lock_guard lock(mutex_);
  ++hits_of_[stopped.tid()];
  return {};  // behind the int3 is behind the nop
}

Resumption BreakpointObserver::OnSignal(Stopped& stopped, const siginfo_t& info) {
  Record("signal " + Number(info.si_signo) + " to " + Number(stopped.tid()));
  return {.signal = info.si_signo};
}

void BreakpointObserver::OnThreadStart(Stopped& stopped) {
  Record("start " + Number(stopped.tid()));
}
void BreakpointObserver::OnThreadExit(Process&, pid_t tid) {
  Record("end " + Number(tid));
}

ChildChoice BreakpointObserver::OnFork(Process& parent, Process& child, Stopped& child_stopped) {
  Record("fork " + Number(parent.pid()));
  if (on_fork == ChildChoice::kRelease && nop_.value != 0) {
    if (!child_stopped.WriteMemory(nop_, kNop).ok()) Record("dirty " + Number(child.pid()));
  }
  return on_fork;
}

bool BreakpointObserver::OnVfork(Process& parent, pid_t) {
  Record("vfork " + Number(parent.pid()));
  return follow_vfork;
}

Resumption BreakpointObserver::OnExec(Stopped& stopped) {
  Record("exec " + Number(stopped.process().pid()));
  if (exec_hook) exec_hook(stopped);
  return {};
}

ChildChoice BreakpointObserver::OnChildExec(Process& parent, Process& child, Stopped&) {
  Record("child exec " + Number(parent.pid()) + " " + Number(child.pid()));
  return on_child_exec;
}

Resumption BreakpointObserver::OnSyscall(Stopped&, bool is_exit) {
  Record(is_exit ? "syscall exit" : "syscall entry");
  return {.how = is_exit ? Resumption::How::kContinue : Resumption::How::kSyscall};
}

void BreakpointObserver::OnExit(Process& process, int wait_status) {
  Record("exit " + Number(process.pid()) + " status " + Number(wait_status));
}

Status BreakpointObserver::Insert(Stopped& stopped, RemoteAddr nop) {
  nop_ = nop;
  return stopped.WriteMemory(nop, kInt3);
}

Status BreakpointObserver::Remove(Stopped& stopped) {
  return stopped.WriteMemory(nop_, kNop);
}

uint64_t BreakpointObserver::hits_of(pid_t pid) {
  std::lock_guard lock(mutex_);
  return hits_of_[pid];
}

void BreakpointObserver::Record(const std::string& event) {
  std::lock_guard lock(mutex_);
  events_.push_back(event);
}

std::vector<std::string> BreakpointObserver::events() {
  std::lock_guard lock(mutex_);
  return events_;
}

bool BreakpointObserver::Saw(const std::string& event) {
  std::lock_guard lock(mutex_);
  return std::find(events_.begin(), events_.end(), event) != events_.end();
}

int BreakpointObserver::Count(const std::string& prefix) {
  std::lock_guard lock(mutex_);
  return static_cast<int>(
      std::count_if(events_.begin(), events_.end(),
                    [&](const std::string& event) { return event.starts_with(prefix); }));
}

}  // namespace probed::tracee
