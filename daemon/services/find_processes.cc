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
// group or the mapping of a file is told by nobody, so everything is looked at as often.
constexpr milliseconds kTurn{50};

// When to look at everything: every turn, but never for more than a tenth of the time.
class FullLooks {
 public:
  milliseconds UntilNext() const {
    return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(next_ - steady_clock::now()));
  }
  void Began() { began_ = steady_clock::now(); }
  void Ended() {
    const auto now = steady_clock::now();
    next_ = now + std::max<steady_clock::duration>(kTurn, 9 * (now - began_));
  }

 private:
  steady_clock::time_point began_{}, next_{};
};

void Write(const std::vector<event::TargetId>& found, v1::FindProcessesResponse& response) {
  for (const event::TargetId id : found)
    *response.add_processes() = ToProcess(id);
}

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
  while (found.empty() && steady_clock::now() < deadline && !IsOver(call)) {
    const auto changed = events.Next(kTurn);
    found = Select(selection, changed.all ? sys::ListProcesses() : changed.pids);
  }
  return found;
}

bool TargetService::IsOver(const grpc::ServerContext& call) const {
  return call.IsCancelled() || context_.stop.stop_requested();
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
  Write(found, *response);
  return grpc::Status::OK;
}

grpc::Status TargetService::WatchProcesses(grpc::ServerContext* call,
                                           const v1::FindProcessesRequest* request,
                                           grpc::ServerWriter<v1::FindProcessesResponse>* writer) {
  const auto selection = ToSelection(*request);
  if (!selection.ok()) return ToStatus(selection.error());
  sys::ProcessEvents events;  // listens before we look
  FullLooks looks;
  std::set<event::TargetId> told;
  for (bool open = true; open && !IsOver(*call);) {
    const bool all = looks.UntilNext().count() == 0;
    looks.Began();
    auto found =
        Select(*selection, all ? sys::ListProcesses() : events.Next(looks.UntilNext()).pids);
    std::set<event::TargetId> matching(found.begin(), found.end());
    std::erase_if(found, [&](event::TargetId id) { return told.contains(id); });
    // Who matches no more may match again, and pids do not pile up.
    if (all) told = std::move(matching);
    told.insert(found.begin(), found.end());
    if (all) looks.Ended();
    v1::FindProcessesResponse response;
    Write(found, response);
    if (!found.empty()) open = writer->Write(response);
  }
  return grpc::Status::OK;
}

}  // namespace probed::daemon
