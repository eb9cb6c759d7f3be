#include "engine/tracee/attach_check.h"

#include <linux/capability.h>
#include <unistd.h>

#include <cerrno>

#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"

namespace probed::tracee {
namespace {

constexpr uint64_t kPtraceCapability = uint64_t{1} << CAP_SYS_PTRACE;

std::string Name(pid_t pid, const sys::TaskStatus& status) {
  return "process " + std::to_string(pid) + " (" + status.name + ")";
}

Error Refusal(pid_t pid, ErrorCode code, std::string reason, std::string message,
              std::string hint) {
  return Error{.code = code,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = std::move(hint),
               .metadata = {{"pid", std::to_string(pid)}}};
}

// Another probed can be asked instead, or else whoever has started it for one use.
std::string HintAgainst(pid_t tracer, const std::string& comm) {
  if (comm != "probed") return "a process has one tracer at a time: end that one first";
  Result<sys::TaskStatus> daemon = sys::ReadTaskStatus(tracer);
  pid_t parent = daemon.ok() ? daemon->parent_pid : 0;
  if (parent == 0 || sys::ReadComm(parent) != "probectl") {
    return "a process has one tracer at a time: let probectl use that daemon, which serves many "
           "(--address names its socket)";
  }
  return "it serves one command alone (pid " + std::to_string(parent) + ": " +
         sys::ReadCmdline(parent) +
         "): end that one first, or run 'probed' once and let every probectl use it";
}

Error AlreadyTraced(pid_t pid, const sys::TaskStatus& target) {
  // The kernel names the thread.
  Result<sys::TaskStatus> thread = sys::ReadTaskStatus(target.tracer_pid);
  pid_t tracer = thread.ok() ? thread->tgid : target.tracer_pid;
  std::string comm = sys::ReadComm(tracer);
  Error error = Refusal(
      pid, ErrorCode::kFailedPrecondition, "ALREADY_TRACED",
      Name(pid, target) + " is already traced by " + comm + " (pid " + std::to_string(tracer) + ")",
      HintAgainst(tracer, comm));
  error.metadata["tracer_pid"] = std::to_string(tracer);
  error.metadata["tracer_comm"] = comm;
  return error;
}

// Two tracers that trace each other can never be ended.
bool TracesUs(pid_t pid) {
  Result<std::vector<pid_t>> tasks = sys::ListTasks(::getpid());
  if (!tasks.ok()) return false;
  for (pid_t tid : *tasks) {
    Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
    if (!status.ok() || status->tracer_pid == 0) continue;
    if (status->tracer_pid == pid || sys::IsTaskOf(pid, status->tracer_pid)) return true;
  }
  return false;
}

// Looked at twice, because an exec may meanwhile have given the leader's id to a living thread.
bool IsZombie(pid_t pid, const sys::TaskStatus& seen) {
  if ((seen.state != 'Z' && seen.state != 'X') || sys::IsAlive(pid)) return false;
  Result<sys::TaskStatus> again = sys::ReadTaskStatus(pid);
  return !again.ok() || again->state == 'Z' || again->state == 'X';
}

bool HasUid(const sys::TaskStatus& status, uid_t uid) {
  return status.real_uid == uid && status.effective_uid == uid && status.saved_uid == uid;
}

Error YamaRefusal(pid_t pid, const sys::TaskStatus& target, int scope) {
  std::string hint = scope == 3 ? "reboot without kernel.yama.ptrace_scope=3: it cannot be lowered"
                     : scope == 2
                         ? "run the daemon with CAP_SYS_PTRACE"
                         : "run the daemon with CAP_SYS_PTRACE, or start the program under it "
                           "(probectl run), or lower kernel.yama.ptrace_scope to 0";
  Error error = Refusal(pid, ErrorCode::kPermissionDenied, "YAMA_SCOPE",
                        "kernel.yama.ptrace_scope=" + std::to_string(scope) +
                            " forbids attaching to " + Name(pid, target),
                        std::move(hint));
  error.metadata["scope"] = std::to_string(scope);
  return error;
}

Error UidRefusal(pid_t pid, const sys::TaskStatus& target, uid_t ours) {
  Error error = Refusal(pid, ErrorCode::kPermissionDenied, "UID_MISMATCH",
                        Name(pid, target) + " runs as uid " + std::to_string(target.real_uid) +
                            ", the daemon as uid " + std::to_string(ours),
                        "run the daemon as that user or with CAP_SYS_PTRACE");
  error.metadata["target_uid"] = std::to_string(target.real_uid);
  return error;
}

bool IsDumpable(pid_t pid, const sys::TaskStatus& target) {
  Result<uid_t> owner = sys::ProcOwner(pid);
  // The kernel gives /proc/PID of a process that is not dumpable to root (proc(5)).
  return !owner.ok() || *owner == target.effective_uid || target.effective_uid == 0;
}

}  // namespace

Status CheckAttachable(pid_t pid) {
  if (pid == ::getpid()) {
    return Refusal(pid, ErrorCode::kInvalidArgument, "SELF", "that is the daemon itself",
                   "run a second daemon to probe this one");
  }
  PROBED_TRY(sys::TaskStatus target, sys::ReadTaskStatus(pid));
  if (target.tgid != pid) {
    return Refusal(pid, ErrorCode::kNotFound, "PROCESS_NOT_FOUND",
                   std::to_string(pid) + " is a thread of process " + std::to_string(target.tgid),
                   "attach to process " + std::to_string(target.tgid));
  }
  if (pid == 1) {
    return Refusal(pid, ErrorCode::kFailedPrecondition, "INIT",
                   Name(pid, target) + " is init: if it came to harm, the machine would",
                   "processes that it has started can be probed; 'probectl run' starts one");
  }
  PROBED_TRY(sys::TaskStat stat, sys::ReadTaskStat(pid));
  if (stat.kernel_thread) {
    return Refusal(pid, ErrorCode::kFailedPrecondition, "KERNEL_THREAD",
                   Name(pid, target) + " is a kernel thread and has no program to probe",
                   "define a kprobe instead");
  }
  if (IsZombie(pid, target)) {
    return Refusal(pid, ErrorCode::kFailedPrecondition, "ZOMBIE",
                   Name(pid, target) + " has ended and waits for its parent, process " +
                       std::to_string(target.parent_pid),
                   "nothing of its program is left to probe; 'probectl run' begins with one");
  }
  if (TracesUs(pid)) {
    return Refusal(pid, ErrorCode::kFailedPrecondition, "ANCESTOR_TRACES_US",
                   Name(pid, target) + " traces this daemon", "run the daemon outside of it");
  }
  // A dead leader of a process that we have left stays ours until its last thread ends.
  bool is_traced = target.tracer_pid != 0 && target.tracer_pid != sys::CurrentTid();
  if (is_traced) return AlreadyTraced(pid, target);
  return {};
}

Error DescribeRefusal(pid_t pid, const sys::TaskStatus& target, const Standing& ours) {
  if (target.tracer_pid != 0) return AlreadyTraced(pid, target);
  if (ours.ptrace_is_filtered) {
    return Refusal(pid, ErrorCode::kPermissionDenied, "SECCOMP_FILTER",
                   "a seccomp filter forbids ptrace to this daemon",
                   "run it without the filter (in a container: --cap-add SYS_PTRACE, or "
                   "--security-opt seccomp=unconfined)");
  }
  if (ours.yama_scope == 3) return YamaRefusal(pid, target, ours.yama_scope);
  if (!ours.privileged) {
    if (!HasUid(target, ours.uid)) return UidRefusal(pid, target, ours.uid);
    if (!ours.target_is_dumpable) {
      return Refusal(pid, ErrorCode::kPermissionDenied, "NOT_DUMPABLE",
                     Name(pid, target) +
                         " has made itself undumpable (prctl PR_SET_DUMPABLE, or its "
                         "file may not be read)",
                     "run the daemon with CAP_SYS_PTRACE");
    }
    if (ours.yama_scope == 1 || ours.yama_scope == 2) {
      return YamaRefusal(pid, target, ours.yama_scope);
    }
  }
  return Refusal(pid, ErrorCode::kPermissionDenied, "MISSING_CAPABILITY",
                 "the kernel does not permit attaching to " + Name(pid, target),
                 ours.privileged ? "a security module or a user namespace forbids it"
                                 : "run the daemon with CAP_SYS_PTRACE (in a container: --cap-add "
                                   "SYS_PTRACE): the process has privileges that the daemon lacks");
}

Error DiagnoseRefusal(pid_t pid, const sys::TaskStatus& target, int error_number) {
  bool is_filtered = sys::IsPtraceFiltered();
  if (error_number != EPERM && error_number != EACCES && !is_filtered) {
    return ErrnoError(error_number, "attach to " + Name(pid, target));
  }
  Result<sys::TaskStatus> self = sys::ReadTaskStatus(::getpid());
  return DescribeRefusal(
      pid, target,
      {.privileged = self.ok() && (self->permitted_caps & kPtraceCapability) != 0,
       .uid = ::geteuid(),
       .yama_scope = sys::YamaScope(),
       .target_is_dumpable = IsDumpable(pid, target),
       .ptrace_is_filtered = is_filtered});
}

}  // namespace probed::tracee
