#include "daemon/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/plural.h"
#include "daemon/canary.h"
#include "daemon/journal_file.h"
#include "engine/engine.h"
#include "engine/sys/pidfd.h"

namespace probed::daemon {
namespace {

// In the guard.
constexpr int kDaemonFd = 3;
constexpr int kTracerFd = 4;
constexpr int kCanaryFd = 5;
constexpr int kJournalFd = 6;
constexpr int kMostRetries = 300;
constexpr int kRetryMs = 200;
constexpr int kDaemonsEndMs = 5000;

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

  // In the guard `fd` is number `as`.
  void Give(int fd, int as) { posix_spawn_file_actions_adddup2(&actions_, fd, as); }

  // A session of its own, so that no terminal and no group's signal reaches it.
  pid_t Run(pid_t tracer, int& error) {
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    char name[] = "probed-guard";
    std::string tid = std::to_string(tracer);
    char* arguments[] = {name, const_cast<char*>(kGuardOption), tid.data(), nullptr};
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

// Whether it has come.
bool WaitForEnd(int of, int milliseconds) {
  pollfd ended{of, POLLIN, 0};
  int found = 0;
  while ((found = poll(&ended, 1, milliseconds)) < 0) {
    if (errno != EINTR) return false;
  }
  return found > 0;
}

// The tracer may have to wait for the CPU before it can die.
bool WaitForTracersEnd(pid_t tracer) {
  pollfd ends[] = {{kTracerFd, POLLIN, 0}, {kCanaryFd, POLLIN, 0}};
  while (poll(ends, std::size(ends), -1) < 0) {
    if (errno != EINTR) return false;
  }
  if (ends[0].revents == 0) Hurry(tracer);
  return WaitForEnd(kTracerFd, -1);
}

void Print(const std::vector<Error>& errors) {
  for (const Error& error : errors)
    fmt::print(stderr, "probed guard: {}\n", error.ToString());
}

bool AreSame(const std::vector<Error>& one, const std::vector<Error>& other) {
  return std::ranges::equal(one, other, {}, &Error::ToString, &Error::ToString);
}

int GiveBack(engine::Engine& engine) {
  engine::SalvageReport report = engine.Salvage(kJournalFd);
  // What it had in tracefs is its own until its files are closed.
  if (WaitForEnd(kDaemonFd, kDaemonsEndMs)) (void)engine::Engine::SweepKernel();
  // A debugger may be in the way for a while, or a thread in uninterruptible sleep.
  const std::vector<Error> first = report.errors;
  Print(first);
  for (int i = 0; i < kMostRetries && !report.errors.empty(); ++i) {
    poll(nullptr, 0, kRetryMs);
    report = engine.Salvage(kJournalFd);
  }
  if (!AreSame(first, report.errors)) Print(report.errors);
  if (report.processes > 0) {
    // Those of jumps stay hijacked: the program's own copy of our code gives them back.
    const std::string returns =
        report.returns == 0 ? "" : ", " + Plural(report.returns, "return address");
    fmt::print(stderr, "probed guard: the daemon died; gave back {}: {}{}\n",
               Plural(report.processes, "process"), Plural(report.sites, "site"), returns);
  }
  if (!report.errors.empty()) return 1;  // the next daemon tries again
  RemoveJournal(kJournalFd);
  return 0;
}

}  // namespace

Guard::Guard(pid_t pid, UniqueFd pidfd)
    : pid_(pid), pidfd_(std::move(pidfd)), started_ns_(MonotonicNow()) {}

Result<Guard> Guard::Start(const Ward& ward) {
  PROBED_TRY(const UniqueFd daemon, sys::OpenProcess(getpid()));
  const std::pair<int, int> given[] = {{daemon.get(), kDaemonFd},
                                       {ward.tracer_end, kTracerFd},
                                       {ward.canary, kCanaryFd},
                                       {ward.journal, kJournalFd}};
  SpawnSetup setup;
  std::vector<UniqueFd> high;
  for (auto [fd, as] : given)
    setup.Give(high.emplace_back(Duplicate(fd)).get(), as);
  int error = 0;
  const pid_t pid = setup.Run(ward.tracer, error);
  if (error != 0) return ErrnoError(error, "start of the guard process");
  PROBED_TRY(UniqueFd pidfd, sys::OpenProcess(pid));
  return Guard(pid, std::move(pidfd));
}

std::chrono::nanoseconds Guard::Reap() const {
  waitpid(pid_, nullptr, WNOHANG);
  return std::chrono::nanoseconds(MonotonicNow() - started_ns_);
}

int RunGuard(const char* tracer) {
  prctl(PR_SET_NAME, "probed-guard");
  // Sockets that the daemon was given: nobody is to wait for their end because of us.
  close_range(kJournalFd + 1, ~0u, 0);
  IgnoreRequestsToEnd();
  Hurry(0);  // threads of targets are busy waiting for us when we have something to do
  auto engine = engine::Engine::Create({});
  if (!engine.ok()) Print({engine.error()});
  const bool is_ours = engine.ok() && WaitForTracersEnd(std::atoi(tracer));
  const int status = is_ours ? GiveBack(**engine) : 1;
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace probed::daemon
