// TargetService: processes by what they are.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "daemon/convert/status.h"
#include "daemon/convert/target.h"
#include "daemon/services/targets.h"
#include "engine/sys/proc.h"
#include "engine/sys/process_events.h"

namespace probed::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How soon a client that has gone, or a daemon that ends, is noticed. A move to another control
// group is told by nobody, so everything is looked at as often.
constexpr milliseconds kTurn{100};

}  // namespace

std::vector<event::TargetId> TargetService::Select(const ProcessSelection& selection,
                                                   const std::vector<pid_t>& candidates) {
  std::vector<event::TargetId> found;
  for (const pid_t pid : std::set<pid_t>(candidates.begin(), candidates.end())) {
    if (pid == ::getpid() || !IsSelected(selection, pid)) continue;
    const auto allowed = context_.authorizer.CheckProcess(caller_, pid);
    if (allowed.ok()) found.push_back(*allowed);
  }
  return found;
}

// Listens before it looks, so that nothing starts unseen in between.
std::vector<event::TargetId> TargetService::WaitFor(const ProcessSelection& selection,
                                                    milliseconds at_most,
                                                    const grpc::ServerContext& call) {
  sys::ProcessEvents events;
  const auto deadline = steady_clock::now() + at_most;
  auto found = Select(selection, sys::ListProcesses());
  while (found.empty() && steady_clock::now() < deadline && !call.IsCancelled() &&
         !context_.stop.stop_requested()) {
    const auto changed = events.Next(kTurn);
    found = Select(selection, changed.all ? sys::ListProcesses() : changed.pids);
  }
  return found;
}

grpc::Status TargetService::FindProcesses(grpc::ServerContext* call,
                                          const v1::FindProcessesRequest* request,
                                          v1::FindProcessesResponse* response) {
  const auto selection = ToSelection(*request);
  if (!selection.ok()) return ToStatus(selection.error());
  const auto wait = ToWait(*request);
  if (!wait.ok()) return ToStatus(wait.error());
  const auto found = wait->count() == 0 ? Select(*selection, sys::ListProcesses())
                                        : WaitFor(*selection, *wait, *call);
  for (const event::TargetId id : found)
    *response->add_processes() = ToProcess(id);
  return grpc::Status::OK;
}

}  // namespace probed::daemon
