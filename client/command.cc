#include "client/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace probed::client {
namespace {

struct Pipe {
  UniqueFd reader, writer;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Reads exactly one object; false at end of file.
template <class T>
bool ReadObject(int fd, T& object) {
  ssize_t count;
  do {
    count = ::read(fd, &object, sizeof object);
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof object);
}

// In the child.
[[noreturn]] void BecomeProgram(char* const* words, pid_t tracer, int go, int outcome) {
  ::signal(SIGPIPE, SIG_DFL);
  // Yama scope 1 lets only ancestors trace, and the daemon is none (Yama, "scope").
  if (tracer > 0) ::prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
  char byte = 0;
  if (!ReadObject(go, byte)) ::_exit(127);
  ::execvp(words[0], words);
  int error_number = errno;
  [[maybe_unused]] ssize_t written = ::write(outcome, &error_number, sizeof error_number);
  ::_exit(127);
}

Error ExecError(const std::string& name, int error_number) {
  bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return {.code = missing ? ErrorCode::kNotFound : ErrorCode::kPermissionDenied,
          .reason = missing ? "COMMAND_NOT_FOUND" : "CANNOT_EXECUTE",
          .message = "cannot run " + name + ": " + std::strerror(error_number),
          .hint = missing ? "a path, or a name on PATH" : "",
          .metadata = {}};
}

}  // namespace

Result<Command> Command::Fork(const std::vector<std::string>& words, pid_t tracer) {
  std::vector<char*> argv;
  for (const auto& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  PROBED_TRY(Pipe go, MakePipe());
  PROBED_TRY(Pipe outcome, MakePipe());
  pid_t pid = ::fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    go.writer.Reset();
    BecomeProgram(argv.data(), tracer, go.reader.get(), outcome.writer.get());
  }
  return Command(words[0], pid, std::move(go.writer), std::move(outcome.reader));
}

Command::Command(std::string name, pid_t pid, UniqueFd go, UniqueFd outcome)
    : name_(std::move(name)), pid_(pid), go_(std::move(go)), outcome_(std::move(outcome)) {}

Command::Command(Command&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      go_(std::move(other.go_)),
      outcome_(std::move(other.outcome_)),
      status_(other.status_) {}

Command::~Command() {
  if (pid_ <= 0 || !go_.valid()) return;
  go_.Reset();
  ::waitpid(pid_, nullptr, 0);
}

Result<void> Command::Release() {
  char byte = 1;
  [[maybe_unused]] ssize_t written = ::write(go_.get(), &byte, 1);
  go_.Reset();
  int error_number = 0;
  if (ReadObject(outcome_.get(), error_number)) return ExecError(name_, error_number);
  return {};
}

std::optional<int> Command::TryWait() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

void Command::Signal(int number) {
  if (!TryWait()) ::kill(pid_, number);
}

}  // namespace probed::client
