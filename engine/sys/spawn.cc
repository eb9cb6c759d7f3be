#include "engine/sys/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

namespace probed::sys {
namespace {

constexpr char kGo = 'g';

struct Pipe {
  UniqueFd read_end, write_end;
};

Result<Pipe> MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string_view SearchPath(const std::vector<std::string>& environment) {
  constexpr std::string_view kKey = "PATH=";
  for (std::string_view entry : environment) {
    if (entry.starts_with(kKey)) return entry.substr(kKey.size());
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

std::vector<std::string> Candidates(const std::string& program,
                                    const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> candidates;
  std::string_view rest = SearchPath(environment);
  while (true) {
    size_t colon = rest.find(':');
    std::string directory(rest.substr(0, colon));
    candidates.push_back((directory.empty() ? "." : directory) + "/" + program);
    if (colon == std::string_view::npos) return candidates;
    rest.remove_prefix(colon + 1);
  }
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings)
    pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry)
    entries.emplace_back(*entry);
  return entries;
}

std::vector<gid_t> GroupsOf(uid_t uid, gid_t gid) {
  std::vector<gid_t> groups{gid};
  const passwd* user = ::getpwuid(uid);
  if (user == nullptr) return groups;
  int count = 256;
  groups.resize(static_cast<size_t>(count));
  if (::getgrouplist(user->pw_name, gid, groups.data(), &count) < 0) count = 1;
  groups.resize(static_cast<size_t>(count));
  return groups;
}

// All that the child needs, made before fork(): other threads may hold the allocator's locks.
struct ChildPlan {
  std::vector<std::string> environment;
  std::vector<std::string> candidates;
  std::vector<char*> argv, envp, paths;
  std::vector<gid_t> groups;
  bool change_user = false;
};

void ResetSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal)
    ::sigaction(signal, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool BecomeUser(const SpawnRequest& request, const ChildPlan& plan) {
  if (!plan.change_user) return true;
  return ::setgroups(plan.groups.size(), plan.groups.data()) == 0 && ::setgid(request.gid) == 0 &&
         ::setuid(request.uid) == 0;
}

// As execvp(3): a candidate that is not there or may not be run is passed over.
int ExecFirst(const ChildPlan& plan) {
  int error = ENOENT;
  for (char* path : plan.paths) {
    if (path == nullptr) break;
    ::execve(path, plan.argv.data(), plan.envp.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (error != EACCES && error != ENOENT) break;
  }
  return error;
}

[[noreturn]] void RunChild(const SpawnRequest& request, const ChildPlan& plan, int go,
                           int failure) {
  ::syscall(SYS_close_range, 3, ~0u, 1u << 2 /* CLOSE_RANGE_CLOEXEC */);
  ResetSignals();
  // The right to be preferred is the daemon's.
  const rlimit none{};
  ::setrlimit(RLIMIT_NICE, &none);
  char word = 0;
  if (::read(go, &word, 1) != 1 || word != kGo) ::_exit(127);
  int error = 0;
  const char* directory = request.working_directory.c_str();
  if ((*directory != '\0' && ::chdir(directory) != 0) || !BecomeUser(request, plan)) {
    error = errno;
  } else {
    error = ExecFirst(plan);
  }
  [[maybe_unused]] ssize_t written = ::write(failure, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

SpawnedChild::SpawnedChild(pid_t pid, UniqueFd go, UniqueFd failure)
    : pid_(pid), go_(std::move(go)), failure_(std::move(failure)) {}

Result<SpawnedChild> SpawnedChild::Fork(const SpawnRequest& request) {
  if (request.argv.empty() || request.argv[0].empty()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "EMPTY_COMMAND",
                 .message = "no program to run",
                 .hint = "",
                 .metadata = {}};
  }
  ChildPlan plan;
  plan.environment = request.environment.empty() ? OwnEnvironment() : request.environment;
  plan.candidates = Candidates(request.argv[0], plan.environment);
  plan.argv = Pointers(request.argv);
  plan.envp = Pointers(plan.environment);
  plan.paths = Pointers(plan.candidates);
  plan.change_user = request.uid != ::geteuid() || request.gid != ::getegid();
  if (plan.change_user) plan.groups = GroupsOf(request.uid, request.gid);
  PROBED_TRY(Pipe go, MakePipe());
  PROBED_TRY(Pipe failure, MakePipe());
  pid_t pid = ::fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    ::close(go.write_end.get());
    RunChild(request, plan, go.read_end.get(), failure.write_end.get());
  }
  return SpawnedChild(pid, std::move(go.write_end), std::move(failure.read_end));
}

void SpawnedChild::LetExec() {
  [[maybe_unused]] ssize_t written = ::write(go_.get(), &kGo, 1);
  go_.Reset();
}

int SpawnedChild::FailureErrno() {
  int error = 0;
  // The write end is closed by the exec or the exit, so this does not block.
  ssize_t count = ::read(failure_.get(), &error, sizeof error);
  return count == sizeof error ? error : 0;
}

}  // namespace probed::sys
