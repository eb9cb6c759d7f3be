#pragma once
// Which running processes a verb is about: by number, or by what they are.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/api.h"
#include "client/signals.h"
#include "client/talk.h"

namespace probed::client {

struct ProcessOptions {
  std::vector<int> pids;
  std::string name;
  std::string executable;
  std::string user;
  std::string cgroup;
  std::string container;
  std::string mapped_file;
  bool wait = false;
  bool join = false;

  bool has_selection() const {
    return !name.empty() || !executable.empty() || !user.empty() || !cgroup.empty() ||
           !container.empty() || !mapped_file.empty();
  }
  // Processes that start to match later belong to the trace, too.
  bool others_come() const { return join || !mapped_file.empty(); }
};
void AddProcessOptions(CLI::App& verb, ProcessOptions& options);

// NO_SELECTION, NO_SUCH_USER: what the command line alone tells.
Result<v1::FindProcessesRequest> SelectionOf(const ProcessOptions& options);

// Whether it might be the end of us if that process waited: we, and those that we descend from,
// unless they were named by number.
bool IsNotMeant(const ProcessOptions& options, int pid);

// Nobody came as long as was waited.
inline constexpr char kNoneMatched[] = "NO_PROCESS_MATCHED";

// Their pids. With `wait`, or when others may come, this waits until there is one, for so many
// seconds (0: without end) or until an interrupt is among `signals`: then there is none. Without
// `signals` an interrupt does what it does by default. NO_SUCH_PROCESS, NO_PROCESS_MATCHED
// (nobody came in those seconds), and what the daemon refuses.
Reply<std::vector<int>> FindPids(const ProcessOptions& options, double most_seconds,
                                 const v1::FindProcessesRequest& selection, Api& api,
                                 Signals* signals, Talk& talk);

}  // namespace probed::client
