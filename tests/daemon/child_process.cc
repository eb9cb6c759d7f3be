#include "tests/daemon/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/fork.h"

namespace probed::daemon {
namespace {

constexpr int kPatienceMs = 20'000;

bool Readable(int fd) {
  pollfd poll_fd{fd, POLLIN, 0};
  return poll(&poll_fd, 1, kPatienceMs) == 1;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const Options& options) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) std::abort();
  std::vector<std::string> words = argv;
  std::vector<std::string> variables = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    variables.emplace_back(*entry);
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<char*> environment = Pointers(variables);
  pid_ = ForkOrDie();
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    if (options.inherit_fd >= 0) fcntl(options.inherit_fd, F_SETFD, 0);
    execve(arguments[0], arguments.data(), environment.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  input_ = UniqueFd(in[1]);
  output_ = UniqueFd(out[0]);
  pidfd_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

ChildProcess::~ChildProcess() {
  if (!running()) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void ChildProcess::Say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(input_.get(), text.data(), text.size()) < 0) return;
}

std::string ChildProcess::ReadLine() {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    const ssize_t size = Readable(output_.get()) ? read(output_.get(), bytes, sizeof bytes) : 0;
    if (size <= 0) return "";
    buffer_.append(bytes, static_cast<size_t>(size));
  }
}

void ChildProcess::Signal(int signal) {
  if (running()) kill(pid_, signal);
}

int ChildProcess::Wait() {
  if (!Readable(pidfd_.get())) return -1;
  int status = -1;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

long ProcNumber(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::atol(line.c_str() + field.size() + 1);
  return -1;
}

pid_t TracerOf(pid_t pid) {
  const long thread = ProcNumber(pid, "TracerPid");
  return thread <= 0 ? 0 : static_cast<pid_t>(ProcNumber(static_cast<pid_t>(thread), "Tgid"));
}

}  // namespace probed::daemon
