#include "client/private_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <sstream>

namespace probed::client {
namespace {

constexpr int kGoodbyeMilliseconds = 10'000;
constexpr size_t kMostLog = 4096;

std::string OwnDirectory() {
  char path[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return {};
  std::string own(path, static_cast<size_t>(length));
  return own.substr(0, own.rfind('/'));
}

bool IsExecutable(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0;
}

// In the child. Only async-signal-safe calls: the parent may be anything.
[[noreturn]] void ExecDaemon(const char* program, int socket, int log) {
  // A session of its own: terminal signals (Ctrl-C, Ctrl-Z) must not stop the tracer.
  ::setsid();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::fcntl(socket, F_SETFD, 0);
  int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  char number[16];
  char* end = number + sizeof number;
  *--end = '\0';
  for (int rest = socket; end == number + sizeof number - 1 || rest > 0; rest /= 10) {
    *--end = static_cast<char>('0' + rest % 10);
  }
  const char* argv[] = {program, "--private-fd", end, nullptr};
  ::execv(program, const_cast<char* const*>(argv));
  ::_exit(127);
}

}  // namespace

Result<std::string> FindDaemon() {
  std::string beside = OwnDirectory() + "/probed";
  if (IsExecutable(beside)) return beside;
  const char* search = std::getenv("PATH");
  std::istringstream directories(search != nullptr ? search : "");
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (directory.empty()) continue;
    if (std::string path = directory + "/probed"; IsExecutable(path)) return path;
  }
  return Error{.code = ErrorCode::kUnavailable,
               .reason = "DAEMON_NOT_FOUND",
               .message = "no daemon is running and there is no 'probed' to start",
               .hint = "install probed beside probectl or on PATH, or start it and pass --address",
               .metadata = {{"looked_at", beside}}};
}

Result<PrivateDaemon> PrivateDaemon::Start() {
  PROBED_TRY(std::string program, FindDaemon());
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return ErrnoError(errno, "socketpair");
  }
  UniqueFd ours(pair[0]), theirs(pair[1]);
  // A pipe would kill the daemon by SIGPIPE if we died first; this cannot.
  UniqueFd log(::memfd_create("probed-log", MFD_CLOEXEC));
  if (!log.valid()) return ErrnoError(errno, "memfd_create");
  pid_t pid = ::fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) ExecDaemon(program.c_str(), theirs.get(), log.get());
  return PrivateDaemon(pid, std::move(ours), std::move(log));
}

PrivateDaemon::PrivateDaemon(PrivateDaemon&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      log_(std::move(other.log_)) {}

PrivateDaemon::~PrivateDaemon() {
  if (pid_ <= 0) return;
  // Reaches the daemon at once, whatever still holds a copy of the descriptor.
  ::shutdown(socket_.get(), SHUT_RDWR);
  UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (handle.valid()) {
    pollfd ended{handle.get(), POLLIN, 0};
    ::poll(&ended, 1, kGoodbyeMilliseconds);
  }
  ::waitpid(pid_, nullptr, WNOHANG);
}

Result<UniqueFd> PrivateDaemon::Connect() const {
  UniqueFd copy(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.valid()) return ErrnoError(errno, "dup of the daemon's socket");
  return copy;
}

std::string PrivateDaemon::Log() const {
  std::string text(kMostLog, '\0');
  ssize_t length = ::pread(log_.get(), text.data(), text.size(), 0);
  text.resize(length > 0 ? static_cast<size_t>(length) : 0);
  return text;
}

}  // namespace probed::client
