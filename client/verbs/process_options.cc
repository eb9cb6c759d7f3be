#include "client/verbs/process_options.h"

#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>

#include "client/newcomers.h"
#include "client/stop_watch.h"
#include "client/typed_places.h"
#include "client/verbs/options.h"

namespace probed::client {
namespace {

Result<uint32_t> UserId(const std::string& user) {
  uint32_t id = 0;
  auto [end, failed] = std::from_chars(user.data(), user.data() + user.size(), id);
  if (failed == std::errc() && end == user.data() + user.size()) return id;
  if (const passwd* entry = ::getpwnam(user.c_str())) return entry->pw_uid;
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = "NO_SUCH_USER",
               .message = fmt::format("no user \"{}\"", user),
               .hint = "a number is taken as a user id",
               .metadata = {}};
}

// In the words of the command line.
std::string Describe(const ProcessOptions& options) {
  std::string text;
  auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : " ", option, value);
  };
  add("--name", options.name);
  add("--exe", options.executable);
  add("--user", options.user);
  add("--cgroup", options.cgroup);
  add("--container", options.container);
  add("--maps", options.mapped_file);
  return text;
}

// A path is a path as the processes see it, so it may be right nevertheless.
std::string DoubtOf(const ProcessOptions& options) {
  for (const std::string& path : {options.executable, options.mapped_file})
    if (!path.empty() && ::access(path.c_str(), F_OK) != 0)
      return fmt::format("; there is no file {} here", path);
  return {};
}

RemoteError NoSuchProcess(const ProcessOptions& options) {
  RemoteError error;
  error.error = {.code = ErrorCode::kNotFound,
                 .reason = "NO_SUCH_PROCESS",
                 .message = fmt::format("no process that you may trace has {}{}", Describe(options),
                                        DoubtOf(options)),
                 .hint = ::geteuid() == 0 ? "with --wait the first one to start is taken"
                                          : "with --wait the first one to start is taken; "
                                            "processes of other users take root",
                 .metadata = {}};
  return error;
}

RemoteError NoneMatched(const ProcessOptions& options, double seconds) {
  RemoteError error;
  error.error = {
      .code = ErrorCode::kNotFound,
      .reason = kNoneMatched,
      .message = fmt::format("no process matched {} in {:g} s", Describe(options), seconds),
      .hint = "a longer --duration, or none",
      .metadata = {}};
  return error;
}

// 0: there is none, or it is not known.
int ParentOf(int pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  int parent = 0;
  for (std::string word; file >> word;)
    if (word == "PPid:" && file >> parent) return parent;
  return 0;
}

std::vector<int> WithoutRepeats(const std::vector<int>& pids) {
  std::vector<int> once;
  for (int pid : pids)
    if (std::find(once.begin(), once.end(), pid) == once.end()) once.push_back(pid);
  return once;
}

// Those that run already.
Reply<std::vector<int>> FindNow(const ProcessOptions& options,
                                const v1::FindProcessesRequest& selection, Api& api,
                                Signals* signals, Talk& talk) {
  std::optional<EndOnInterrupt> nothing_yet;
  if (signals != nullptr) nothing_yet.emplace(*signals);
  auto found = api.FindProcesses(selection);
  if (!found) return tl::unexpected(std::move(found).error());
  std::vector<int> pids;
  for (const auto& process : found->processes()) {
    if (!IsNotMeant(options, process.pid())) {
      pids.push_back(process.pid());
    } else if (process.pid() != ::getpid()) {
      talk.Note(fmt::format("{} ({}) is left out: it waits for us", process.pid(), process.comm()));
    }
  }
  return pids;
}

}  // namespace

bool IsNotMeant(const ProcessOptions& options, int pid) {
  if (pid == ::getpid()) return true;
  if (!options.pids.empty()) return false;
  constexpr int kMostGenerations = 64;  // pids are reused while we look
  int ancestor = ::getppid();
  for (int i = 0; i < kMostGenerations && ancestor > 0; ++i, ancestor = ParentOf(ancestor))
    if (ancestor == pid) return true;
  return false;
}

void AddProcessOptions(CLI::App& verb, ProcessOptions& options) {
  auto* pids = AddPidsOption(verb, options.pids, "Process ids, separated by commas");
  auto add = [&](const char* option, std::string& value, const char* description,
                 const char* type) {
    verb.add_option(option, value, description)->excludes(pids)->type_name(type);
  };
  add("--name", options.name, "Processes of this name, or whose program's file has it; a pattern",
      "NAME");
  add("--exe", options.executable, "Processes that execute this file", "FILE");
  add("--user", options.user, "Processes of this user, by name or number", "USER");
  add("--cgroup", options.cgroup, "Processes in this control group or below", "PATH");
  add("--container", options.container, "Processes whose control group's name contains this", "ID");
  add("--maps", options.mapped_file, "Every process that maps this file, now or later", "FILE");
  verb.add_flag("--wait", options.wait, "If there is none, wait for the first one to start")
      ->excludes(pids);
  verb.add_flag("--join", options.join, "Those that start to match later, too, till Ctrl-C")
      ->excludes(pids);
}

Result<v1::FindProcessesRequest> SelectionOf(const ProcessOptions& options) {
  v1::FindProcessesRequest request;
  if (options.pids.empty() && !options.has_selection()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "NO_SELECTION",
                 .message = "no process is named",
                 .hint = "--pid PID, or --name, --exe, --user, --cgroup, --container, --maps",
                 .metadata = {}};
  }
  request.set_name(options.name);
  request.set_executable(AbsolutePath(options.executable));
  request.set_cgroup(options.cgroup);
  request.set_container(options.container);
  request.set_mapped_file(AbsolutePath(options.mapped_file));
  if (!options.user.empty()) {
    PROBED_TRY(const uint32_t uid, UserId(options.user));
    request.set_uid(uid);
  }
  return request;
}

Reply<std::vector<int>> FindPids(const ProcessOptions& options, double most_seconds,
                                 const v1::FindProcessesRequest& selection, Api& api,
                                 Signals* signals, Talk& talk) {
  if (!options.pids.empty()) return WithoutRepeats(options.pids);
  auto found = FindNow(options, selection, api, signals, talk);
  if (!found || !found->empty()) return found;
  if (!options.wait && !options.others_come()) return tl::unexpected(NoSuchProcess(options));
  talk.Note(
      fmt::format("waiting for a process that has {}{}", Describe(options), DoubtOf(options)));
  Newcomers newcomers(api.WatchProcesses(selection));
  const auto end = DurationEnd(most_seconds);
  while (true) {
    for (const auto& process : newcomers.Take())
      if (!IsNotMeant(options, process.pid())) found->push_back(process.pid());
    if (!found->empty()) return found;
    if (auto error = newcomers.TakeError()) return tl::unexpected(*std::move(error));
    if (signals != nullptr && TakeSignals(*signals, nullptr)) return found;
    if (std::chrono::steady_clock::now() >= end)
      return tl::unexpected(NoneMatched(options, most_seconds));
    pollfd fds[] = {{signals != nullptr ? signals->fd() : -1, POLLIN, 0},
                    {newcomers.fd(), POLLIN, 0}};
    ::poll(fds, std::size(fds), TimeoutUntil(end));
  }
}

}  // namespace probed::client
