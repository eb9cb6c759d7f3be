#pragma once
// What /proc says about processes and threads. proc(5). Thread-safe. A process that is gone gives
// PROCESS_NOT_FOUND.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace probed::sys {

// The fields of /proc/PID/status that decide whether and how a task can be traced.
struct TaskStatus {
  std::string name;
  char state = '?';  // R S D T t Z X I
  pid_t tgid = 0;
  pid_t parent_pid = 0;
  pid_t tracer_pid = 0;  // 0: not traced
  uid_t real_uid = 0;
  uid_t effective_uid = 0;
  uid_t saved_uid = 0;
  int seccomp = 0;       // 0 off, 1 strict, 2 filter
  uint64_t pending = 0;  // this thread's and the process's pending signals, bit N-1
  uint64_t blocked = 0;
  uint64_t ignored = 0;
  uint64_t caught = 0;
  uint64_t permitted_caps = 0;
  bool shadow_stack = false;  // returns are checked against it: Documentation/arch/x86/shstk.rst
  std::vector<pid_t> namespace_pids;  // outermost first
};

// `tid` may be any thread of any process.
Result<TaskStatus> ReadTaskStatus(pid_t tid);
TaskStatus ParseTaskStatus(std::string_view text);

// The fields of /proc/PID/stat that status lacks.
struct TaskStat {
  uint64_t start_ticks = 0;  // since boot; with the pid, it names a process for good
  bool kernel_thread = false;
  bool exiting = false;  // never in user mode again
  int cpu = 0;           // where it ran last
};
Result<TaskStat> ReadTaskStat(pid_t tid);

// Whether a thread of it lives; the first may have ended before the others.
bool IsAlive(pid_t pid);
// The thread that stands for the process where memory, open files and directories are asked for by
// a number: with the first thread, its entry in /proc has lost them (pthread_exit(3) in main()).
// `pid` itself if no other will do.
pid_t LivingTask(pid_t pid);
// "/proc/TASK/leaf" of that thread.
std::string ProcPath(pid_t pid, std::string_view leaf);

std::vector<pid_t> ListProcesses();
Result<std::vector<pid_t>> ListTasks(pid_t pid);
bool IsTaskOf(pid_t pid, pid_t tid);
// Processes that this thread has made; none without CONFIG_PROC_CHILDREN.
std::vector<pid_t> ListChildren(pid_t pid, pid_t tid);
// The number that was given out last, in our process-id name space; 0 when that is not told.
pid_t LastTask();
Result<std::string> ReadMaps(pid_t pid);
std::string ReadComm(pid_t tid);     // empty when gone
std::string ReadCmdline(pid_t pid);  // arguments joined by spaces; empty when gone
// As the kernel names it, " (deleted)" included; empty for a kernel thread or when gone.
std::string ReadExecutable(pid_t pid);
// Of every hierarchy, cgroups(7); empty when gone.
std::vector<std::string> ReadControlGroups(pid_t pid);

// Where a task that sleeps will run on in user mode. TASK_RUNNING when it does not sleep.
struct SleepingPlace {
  RemoteAddr ip, sp;
};
Result<SleepingPlace> ReadSleepingPlace(pid_t tid);

// -1 when the kernel has no Yama.
int YamaScope();
// Owner of the private files in /proc/PID: not the effective uid when the process is not dumpable.
Result<uid_t> ProcOwner(pid_t pid);

enum class Sharing : uint8_t { kYes, kNo, kUnknown };
// Whether two tasks have one address space, kcmp(2); kUnknown without CONFIG_KCMP.
Sharing SharesMemory(pid_t first, pid_t second);

}  // namespace probed::sys
