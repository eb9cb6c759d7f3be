#include "engine/sys/proc.h"

#include <dirent.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <memory>
#include <optional>
#include <string_view>

#include "base/file.h"

namespace probed::sys {
namespace {

constexpr uint64_t kKernelThreadFlag = 0x00200000;  // PF_KTHREAD
constexpr uint64_t kExitingFlag = 0x00000004;       // PF_EXITING

std::string PathOf(pid_t task, std::string_view leaf) {
  return "/proc/" + std::to_string(task) + "/" + std::string(leaf);
}

// The link is the memory's (proc_exe_link): a task that has given that up has none.
bool HasMemory(pid_t task) {
  char path;
  return ::readlink(PathOf(task, "exe").c_str(), &path, sizeof path) >= 0 ||
         (errno != ENOENT && errno != ESRCH);
}

Error NotFound(pid_t pid) {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROCESS_NOT_FOUND",
               .message = "no process " + std::to_string(pid),
               .hint = "check the pid; inside a container it differs from the host's",
               .metadata = {{"pid", std::to_string(pid)}}};
}

Error Gone(pid_t pid) {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROCESS_GONE",
               .message = "process " + std::to_string(pid) + " has ended",
               .hint = "",
               .metadata = {{"pid", std::to_string(pid)}}};
}

template <class T>
T ParseNumber(std::string_view text, int base = 10) {
  size_t start = text.find_first_not_of(" \t");
  T value{};
  if (start == std::string_view::npos) return value;
  std::from_chars(text.data() + start, text.data() + text.size(), value, base);
  return value;
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    size_t start = text.find_first_not_of(" \t");
    if (start == std::string_view::npos) return words;
    size_t end = std::min(text.find_first_of(" \t", start), text.size());
    words.push_back(text.substr(start, end - start));
    text.remove_prefix(end);
  }
}

// Those of a folder's entries that are numbers; nothing if there is no such folder.
std::optional<std::vector<pid_t>> ListNumbers(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (directory == nullptr) return std::nullopt;
  std::vector<pid_t> numbers;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (pid_t number = ParseNumber<pid_t>(entry->d_name); number > 0) numbers.push_back(number);
  }
  return numbers;
}

void ParseUids(std::string_view value, TaskStatus& status) {
  std::vector<std::string_view> words = Words(value);
  if (words.size() < 3) return;
  status.real_uid = ParseNumber<uid_t>(words[0]);
  status.effective_uid = ParseNumber<uid_t>(words[1]);
  status.saved_uid = ParseNumber<uid_t>(words[2]);
}

void ParseSignalField(std::string_view key, std::string_view value, TaskStatus& status) {
  if (key == "SigPnd" || key == "ShdPnd") status.pending |= ParseNumber<uint64_t>(value, 16);
  if (key == "SigBlk") status.blocked = ParseNumber<uint64_t>(value, 16);
  if (key == "SigIgn") status.ignored = ParseNumber<uint64_t>(value, 16);
  if (key == "SigCgt") status.caught = ParseNumber<uint64_t>(value, 16);
}

void ParseStatusField(std::string_view key, std::string_view value, TaskStatus& status) {
  if (key == "Name") status.name = value;
  if (key == "State" && !value.empty()) status.state = value.front();
  if (key == "Tgid") status.tgid = ParseNumber<pid_t>(value);
  if (key == "PPid") status.parent_pid = ParseNumber<pid_t>(value);
  if (key == "TracerPid") status.tracer_pid = ParseNumber<pid_t>(value);
  if (key == "Uid") ParseUids(value, status);
  if (key == "Seccomp") status.seccomp = ParseNumber<int>(value);
  if (key == "CapPrm") status.permitted_caps = ParseNumber<uint64_t>(value, 16);
  if (key == "NSpid") {
    for (std::string_view word : Words(value)) {
      status.namespace_pids.push_back(ParseNumber<pid_t>(word));
    }
  }
  if (key == "x86_Thread_features") {
    std::vector<std::string_view> features = Words(value);
    status.shadow_stack = std::find(features.begin(), features.end(), "shstk") != features.end();
  }
  ParseSignalField(key, value, status);
}

}  // namespace

TaskStatus ParseTaskStatus(std::string_view text) {
  TaskStatus status;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t colon = line.find(":\t");
    if (colon == std::string_view::npos) continue;
    ParseStatusField(line.substr(0, colon), line.substr(colon + 2), status);
  }
  return status;
}

Result<TaskStatus> ReadTaskStatus(pid_t tid) {
  Result<std::string> text = ReadFile(PathOf(tid, "status"));
  if (!text.ok()) return NotFound(tid);
  return ParseTaskStatus(*text);
}

Result<TaskStat> ReadTaskStat(pid_t tid) {
  Result<std::string> text = ReadFile(PathOf(tid, "stat"));
  if (!text.ok()) return NotFound(tid);
  // comm may hold spaces and parentheses: the fields start after the last ')'.
  size_t comm_end = text->rfind(')');
  if (comm_end == std::string::npos) return NotFound(tid);
  std::vector<std::string_view> fields = Words(std::string_view(*text).substr(comm_end + 1));
  constexpr size_t kFlags = 9 - 3, kStartTime = 22 - 3, kProcessor = 39 - 3;  // field N is at N-3
  if (fields.size() <= kProcessor) return NotFound(tid);
  auto flags = ParseNumber<uint64_t>(fields[kFlags]);
  return TaskStat{.start_ticks = ParseNumber<uint64_t>(fields[kStartTime]),
                  .kernel_thread = (flags & kKernelThreadFlag) != 0,
                  .exiting = (flags & kExitingFlag) != 0,
                  .cpu = ParseNumber<int>(fields[kProcessor])};
}

std::vector<pid_t> ListProcesses() {
  return ListNumbers("/proc").value_or(std::vector<pid_t>());
}

Result<std::vector<pid_t>> ListTasks(pid_t pid) {
  auto tasks = ListNumbers(PathOf(pid, "task"));
  if (!tasks) return NotFound(pid);
  return *std::move(tasks);
}

// The last word of /proc/loadavg, proc(5).
pid_t LastTask() {
  auto text = ReadFile("/proc/loadavg");
  if (!text.ok()) return 0;
  return ParseNumber<pid_t>(std::string_view(*text).substr(text->rfind(' ') + 1));
}

bool IsAlive(pid_t pid) {
  const auto tasks = ListTasks(pid);
  return tasks.ok() && std::ranges::any_of(*tasks, [](pid_t tid) {
           const auto status = ReadTaskStatus(tid);
           return status.ok() && status->state != 'Z' && status->state != 'X';
         });
}

pid_t LivingTask(pid_t pid) {
  if (HasMemory(pid)) return pid;
  const auto tasks = ListTasks(pid);
  if (!tasks.ok()) return pid;
  const auto found = std::ranges::find_if(*tasks, HasMemory);
  return found == tasks->end() ? pid : *found;
}

std::string ProcPath(pid_t pid, std::string_view leaf) {
  return PathOf(LivingTask(pid), leaf);
}

bool IsTaskOf(pid_t pid, pid_t tid) {
  return ::access(PathOf(pid, "task/" + std::to_string(tid)).c_str(), F_OK) == 0;
}

std::vector<pid_t> ListChildren(pid_t pid, pid_t tid) {
  std::vector<pid_t> children;
  Result<std::string> text = ReadFile(PathOf(pid, "task/" + std::to_string(tid) + "/children"));
  if (!text.ok()) return children;
  for (std::string_view word : Words(*text))
    children.push_back(ParseNumber<pid_t>(word));
  return children;
}

// Without memory there is nothing to read: it is a zombie, or about to be one; or an exec has
// replaced its memory since the file was opened (fs/proc/task_mmu.c, m_start).
Result<std::string> ReadMaps(pid_t pid) {
  constexpr int kMostExecs = 100;
  for (int i = 0; i < kMostExecs; ++i) {
    Result<std::string> text = ReadFile(ProcPath(pid, "maps"));
    if (!text.ok() && text.error().code == ErrorCode::kNotFound) return NotFound(pid);
    if (!text.ok() || !text->empty()) return text;
    if (!HasMemory(LivingTask(pid))) break;
  }
  return Gone(pid);
}

// "number arguments... sp ip", or "-1 sp ip" outside of a system call, or "running".
Result<SleepingPlace> ReadSleepingPlace(pid_t tid) {
  Result<std::string> text = ReadFile(PathOf(tid, "syscall"));
  if (!text.ok()) return NotFound(tid);
  std::string_view line(*text);
  size_t last = line.rfind("0x");
  size_t before = last == 0 ? last : line.rfind("0x", last - 1);
  if (last == std::string_view::npos || before >= last) {
    return Error{.code = ErrorCode::kUnavailable,
                 .reason = "TASK_RUNNING",
                 .message = "thread " + std::to_string(tid) + " does not sleep",
                 .hint = "",
                 .metadata = {}};
  }
  return SleepingPlace{.ip = RemoteAddr{ParseNumber<uint64_t>(line.substr(last + 2), 16)},
                       .sp = RemoteAddr{ParseNumber<uint64_t>(line.substr(before + 2), 16)}};
}

std::string ReadComm(pid_t tid) {
  Result<std::string> text = ReadFile(PathOf(tid, "comm"));
  if (!text.ok()) return "";
  if (text->ends_with('\n')) text->pop_back();
  return std::move(*text);
}

std::string ReadCmdline(pid_t pid) {
  Result<std::string> text = ReadFile(ProcPath(pid, "cmdline"));
  if (!text.ok()) return "";
  if (text->ends_with('\0')) text->pop_back();
  std::replace(text->begin(), text->end(), '\0', ' ');
  return std::move(*text);
}

std::string ReadExecutable(pid_t pid) {
  std::array<char, PATH_MAX> path;
  const ssize_t length = ::readlink(ProcPath(pid, "exe").c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<size_t>(length)) : "";
}

// Lines of "number:controllers:path"; only the path may contain more colons.
std::vector<std::string> ReadControlGroups(pid_t pid) {
  Result<std::string> text = ReadFile(PathOf(pid, "cgroup"));
  std::vector<std::string> groups;
  if (!text.ok()) return groups;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    const size_t path = text->find(':', text->find(':', begin) + 1) + 1;
    if (path != 0 && path <= end) groups.push_back(text->substr(path, end - path));
    begin = end + 1;
  }
  return groups;
}

int YamaScope() {
  Result<std::string> text = ReadFile("/proc/sys/kernel/yama/ptrace_scope");
  return text.ok() ? ParseNumber<int>(*text) : -1;
}

Result<uid_t> ProcOwner(pid_t pid) {
  struct stat info {};
  // World-readable entries keep the effective uid whatever happens.
  if (::stat(ProcPath(pid, "environ").c_str(), &info) != 0) return NotFound(pid);
  return info.st_uid;
}

Sharing SharesMemory(pid_t first, pid_t second) {
  const pid_t one = LivingTask(first), other = LivingTask(second);
  long result = ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0);
  if (result < 0) return Sharing::kUnknown;
  return result == 0 ? Sharing::kYes : Sharing::kNo;
}

}  // namespace probed::sys
