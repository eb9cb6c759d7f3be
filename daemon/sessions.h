#pragma once
// Who holds which target. A target attached within a session is let go when its last session ends;
// one attached without a session stays until somebody detaches it. Thread-safe: attaching and
// letting go exclude each other, so a target is never let go under a client that has just joined
// it.

#include <sys/types.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace probed::daemon {

// Ids are chosen by clients, so they count per user. An empty id means no session.
struct SessionKey {
  uid_t uid = 0;
  std::string id;
  auto operator<=>(const SessionKey&) const = default;
};

class Sessions {
 public:
  // What sessions do to the engine.
  struct Actions {
    std::function<Result<engine::DetachReport>(event::TargetId)> detach;
    std::function<Status(const std::vector<event::ProbeId>&)> delete_probes;
  };
  explicit Sessions(Actions actions) : actions_(std::move(actions)) {}

  // Runs `attach`, then `verify` on what it returned, and makes `session` a holder. When `verify`
  // refuses, the target is let go again unless somebody else holds it.
  using Attach = std::function<Result<engine::TargetInfo>()>;
  using Verify = std::function<Status(const engine::TargetInfo&)>;
  Result<engine::TargetInfo> Hold(const SessionKey& session, const Attach& attach,
                                  const Verify& verify);
  void AddProbes(const SessionKey& session, const std::vector<event::ProbeId>& probes);
  void ForgetProbes(const std::vector<event::ProbeId>& probes);

  // Lets go of the target when nobody else holds it; `detached` says which. Without a session id:
  // for everybody.
  struct Left {
    engine::DetachReport report;
    bool detached = false;
  };
  Result<Left> Leave(event::TargetId target, const SessionKey& session);

  // Deletes the session's probes and leaves its targets. Returns those that were let go.
  std::vector<event::TargetId> End(const SessionKey& session);

 private:
  void DeleteProbes(const std::set<event::ProbeId>& probes);

  std::mutex mutex_;
  Actions actions_;
  std::map<event::TargetId, std::set<SessionKey>> holders_;
  std::map<SessionKey, std::set<event::ProbeId>> probes_;
};

}  // namespace probed::daemon
