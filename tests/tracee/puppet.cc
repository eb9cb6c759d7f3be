#include "tests/tracee/puppet.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/sys/proc.h"
#include "tests/support/fork.h"

namespace probed::tracee {
namespace {

constexpr int kTimeoutMs = 10'000;
constexpr int kStarted = 0xffff;  // neither an end nor a stop: WIFCONTINUED

// Reports every change of the child's state as its real parent sees it, then ends with it. A parent
// of its own, because the tracer would reap a child of its own process before that parent could.
[[noreturn]] void Keep(pid_t child, int report) {
  Puppet::Report message{child, kStarted};
  [[maybe_unused]] ssize_t written = ::write(report, &message, sizeof message);
  while (::waitpid(child, &message.status, WUNTRACED | WCONTINUED) == child) {
    written = ::write(report, &message, sizeof message);
    if (WIFEXITED(message.status) || WIFSIGNALED(message.status)) break;
  }
  ::_exit(0);
}

}  // namespace

Puppet::Puppet(const std::string& name, std::vector<std::string> arguments) {
  int in[2], out[2], report[2];
  bool ok = ::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0 &&
            ::pipe2(report, O_CLOEXEC) == 0;
  if (!ok) std::abort();
  std::string path = PathOf(name);
  std::vector<char*> argv{path.data()};
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  keeper_ = ForkOrDie();
  if (keeper_ == 0) {
    pid_t child = ForkOrDie();
    if (child != 0) {
      for (int fd : {in[0], in[1], out[0], out[1]})
        ::close(fd);
      Keep(child, report[1]);
    }
    ::setpgid(0, 0);  // so that it can be stopped and continued by process group
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::execv(path.c_str(), argv.data());
    ::_exit(127);
  }
  for (int fd : {in[0], out[1], report[1]})
    ::close(fd);
  input_ = UniqueFd(in[1]);
  output_ = UniqueFd(out[0]);
  reports_ = UniqueFd(report[0]);
  if (std::optional<Report> first = NextReport()) pid_ = first->pid;
}

Puppet::~Puppet() {
  if (!ended_ && pid_ > 0) {
    ::kill(pid_, SIGKILL);
    WaitForEnd();
  }
  ::waitpid(keeper_, nullptr, __WNOTHREAD);
}

std::optional<Puppet::Report> Puppet::NextReport() {
  pollfd readable{.fd = reports_.get(), .events = POLLIN, .revents = 0};
  Report report;
  if (::poll(&readable, 1, kTimeoutMs) != 1) return std::nullopt;
  if (::read(reports_.get(), &report, sizeof report) != sizeof report) return std::nullopt;
  ended_ = ended_ || WIFEXITED(report.status) || WIFSIGNALED(report.status);
  return report;
}

std::string Puppet::PathOf(const std::string& name) {
  return std::string(PROBED_PUPPET_DIRECTORY) + "/" + name;
}

std::string Puppet::ReadLine() {
  while (true) {
    size_t end = buffered_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    pollfd readable{.fd = output_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, kTimeoutMs) != 1) return "";
    char chunk[4096];
    ssize_t count = ::read(output_.get(), chunk, sizeof chunk);
    if (count <= 0) return "";
    buffered_.append(chunk, static_cast<size_t>(count));
  }
}

uint64_t Puppet::ReadNumber(const std::string& word, int base) {
  std::string line = ReadLine();
  if (!line.starts_with(word + " ")) return ~uint64_t{0};
  return std::strtoull(line.c_str() + word.size() + 1, nullptr, base);
}

void Puppet::Send(char byte) {
  [[maybe_unused]] ssize_t written = ::write(input_.get(), &byte, 1);
}

std::optional<int> Puppet::NextChange() {
  std::optional<Report> report = NextReport();
  if (!report) return std::nullopt;
  return report->status;
}

std::optional<int> Puppet::WaitForEnd() {
  while (std::optional<int> status = NextChange()) {
    if (ended_) return status;
  }
  return std::nullopt;
}

}  // namespace probed::tracee
