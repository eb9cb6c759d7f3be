#include "daemon/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/plural.h"
#include "daemon/journal_file.h"
#include "engine/engine.h"

namespace probed::daemon {
namespace {

// In the guard.
constexpr int kDaemonFd = 3;
constexpr int kJournalFd = 4;
constexpr int kMostRetries = 300;
constexpr int kRetryMs = 200;

UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  // A session of its own, so that no terminal and no group's signal reaches it.
  pid_t Run(int daemon, int journal, int& error) {
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_adddup2(&actions_, daemon, kDaemonFd);
    posix_spawn_file_actions_adddup2(&actions_, journal, kJournalFd);
    char name[] = "probed-guard";
    char* arguments[] = {name, const_cast<char*>(kGuardOption), nullptr};
    pid_t pid = -1;
    error = posix_spawn(&pid, "/proc/self/exe", &actions_, &attributes_, arguments, environ);
    return pid;
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

// Above the numbers that they get in the guard, so that one cannot overwrite the other.
UniqueFd Duplicate(int fd) {
  constexpr int kLeast = 16;
  return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, kLeast));
}

void IgnoreRequestsToEnd() {
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
    ::signal(signal, SIG_IGN);
}

bool WaitForDeath(int daemon) {
  pollfd ended{daemon, POLLIN, 0};
  while (poll(&ended, 1, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// Threads of targets may be busy waiting for us. Refused without privileges, and then slower.
void Hurry() {
  constexpr int kNice = -10;
  (void)setpriority(PRIO_PROCESS, 0, kNice);
}

void Print(const std::vector<Error>& errors) {
  for (const Error& error : errors)
    fmt::print(stderr, "probed guard: {}\n", error.ToString());
}

bool AreSame(const std::vector<Error>& one, const std::vector<Error>& other) {
  return std::ranges::equal(one, other, {}, &Error::ToString, &Error::ToString);
}

int GiveBack() {
  Hurry();
  auto engine = engine::Engine::Create({});
  if (!engine.ok()) {
    fmt::print(stderr, "probed guard: {}\n", engine.error().ToString());
    return 1;
  }
  engine::SalvageReport report = (*engine)->Salvage(kJournalFd);
  (void)engine::Engine::SweepKernel();
  // A debugger may be in the way for a while, or a thread in uninterruptible sleep.
  const std::vector<Error> first = report.errors;
  Print(first);
  for (int i = 0; i < kMostRetries && !report.errors.empty(); ++i) {
    poll(nullptr, 0, kRetryMs);
    report = (*engine)->Salvage(kJournalFd);
  }
  if (!AreSame(first, report.errors)) Print(report.errors);
  if (report.processes > 0) {
    fmt::print(stderr, "probed guard: the daemon died; gave back {}: {}, {}\n",
               Plural(report.processes, "process"), Plural(report.sites, "site"),
               Plural(report.returns, "return"));
  }
  if (!report.errors.empty()) return 1;  // the next daemon tries again
  RemoveJournal(kJournalFd);
  return 0;
}

}  // namespace

Guard::Guard(pid_t pid, UniqueFd pidfd)
    : pid_(pid), pidfd_(std::move(pidfd)), started_ns_(MonotonicNow()) {}

Result<Guard> Guard::Start(int journal) {
  UniqueFd daemon = OpenPidfd(getpid());
  if (!daemon.valid()) return ErrnoError(errno, "pidfd_open");
  UniqueFd high_daemon = Duplicate(daemon.get()), high_journal = Duplicate(journal);
  int error = 0;
  const pid_t pid = SpawnSetup().Run(high_daemon.get(), high_journal.get(), error);
  if (error != 0) return ErrnoError(error, "start of the guard process");
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd.valid()) return ErrnoError(errno, "pidfd_open");
  return Guard(pid, std::move(pidfd));
}

std::chrono::nanoseconds Guard::Reap() const {
  waitpid(pid_, nullptr, WNOHANG);
  return std::chrono::nanoseconds(MonotonicNow() - started_ns_);
}

int RunGuard() {
  prctl(PR_SET_NAME, "probed-guard");
  // Sockets that the daemon was given: nobody is to wait for their end because of us.
  close_range(kJournalFd + 1, ~0u, 0);
  IgnoreRequestsToEnd();
  const int status = WaitForDeath(kDaemonFd) ? GiveBack() : 1;
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace probed::daemon
