#include "tests/engine/puppet.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "tests/support/fork.h"

namespace probed::engine {
namespace {

// A dead child of this process may be waited for by its tracer, also of this process, only: taking
// the status here would hide the death from it.
bool IsTraced(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return line != "TracerPid:\t0";
  }
  return false;
}

}  // namespace

std::string Puppet::Path(const std::string& name) {
  return std::string(PUPPETS) + "/" + name;
}

Puppet::Puppet(const std::string& name, std::vector<std::string> arguments) : path_(Path(name)) {
  int to_child[2], from_child[2];
  if (::pipe2(to_child, O_CLOEXEC) != 0 || ::pipe2(from_child, O_CLOEXEC) != 0) return;
  std::vector<char*> argv = {path_.data()};
  for (auto& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = ForkOrDie();
  if (pid_ == 0) {
    ::dup2(to_child[0], 0);
    ::dup2(from_child[1], 1);
    ::execv(path_.c_str(), argv.data());
    ::_exit(127);
  }
  process_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_.Reset(to_child[1]);
  output_.Reset(from_child[0]);
  EXPECT_EQ(ReadLine(), "ready") << path_;
}

Puppet::~Puppet() {
  if (pid_ <= 0 || reaped_) return;
  ::kill(pid_, SIGKILL);
  (void)Wait();
}

void Puppet::Send(const std::string& line) {
  std::string text = line + "\n";
  EXPECT_EQ(::write(input_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string Puppet::ReadLine(std::chrono::milliseconds deadline) {
  auto end = std::chrono::steady_clock::now() + deadline;
  while (true) {
    if (size_t newline = pending_.find('\n'); newline != std::string::npos) {
      std::string line = pending_.substr(0, newline);
      pending_.erase(0, newline + 1);
      return line;
    }
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd poll{.fd = output_.get(), .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) <= 0) return "";
    char buffer[4096];
    ssize_t count = ::read(output_.get(), buffer, sizeof buffer);
    if (count <= 0) return "";
    pending_.append(buffer, static_cast<size_t>(count));
  }
}

int Puppet::Wait(std::chrono::milliseconds deadline) {
  pollfd poll{.fd = process_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, static_cast<int>(deadline.count())) <= 0) return -1;
  int status = kReapedByTracer;
  if (!IsTraced(pid_)) ::waitpid(pid_, &status, 0);
  reaped_ = true;
  return status;
}

}  // namespace probed::engine
