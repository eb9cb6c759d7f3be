#include "daemon/sessions.h"

namespace probed::daemon {

Result<engine::TargetInfo> Sessions::Hold(const SessionKey& session, const Attach& attach,
                                          const Verify& verify) {
  std::lock_guard lock(mutex_);
  PROBED_TRY(engine::TargetInfo target, attach());
  if (Status verified = verify(target); !verified.ok()) {
    if (!holders_.contains(target.id)) (void)actions_.detach(target.id);
    return std::move(verified).error();
  }
  holders_[target.id].insert(session);
  return target;
}

void Sessions::AddProbes(const SessionKey& session, const std::vector<event::ProbeId>& probes) {
  if (session.id.empty()) return;
  std::lock_guard lock(mutex_);
  probes_[session].insert(probes.begin(), probes.end());
}

void Sessions::ForgetProbes(const std::vector<event::ProbeId>& probes) {
  std::lock_guard lock(mutex_);
  for (auto& [session, owned] : probes_)
    for (event::ProbeId probe : probes)
      owned.erase(probe);
}

Result<Sessions::Left> Sessions::Leave(event::TargetId target, const SessionKey& session) {
  std::lock_guard lock(mutex_);
  std::set<SessionKey>& holders = holders_[target];
  if (!session.id.empty()) {
    holders.erase(session);
    if (!holders.empty()) return Left{};
  }
  holders_.erase(target);
  auto report = actions_.detach(target);
  if (!report.ok()) {
    // Tried again when the session ends, unless it has ended by itself.
    if (!session.id.empty() && report.error().code != ErrorCode::kNotFound)
      holders_[target].insert(session);
    return std::move(report).error();
  }
  return Left{*std::move(report), true};
}

std::vector<event::TargetId> Sessions::End(const SessionKey& session) {
  std::lock_guard lock(mutex_);
  auto owned = probes_.extract(session);
  if (!owned.empty()) DeleteProbes(owned.mapped());
  std::vector<event::TargetId> released;
  for (auto it = holders_.begin(); it != holders_.end();) {
    if (it->second.erase(session) == 0 || !it->second.empty()) {
      ++it;
      continue;
    }
    released.push_back(it->first);
    it = holders_.erase(it);
  }
  // An error means that the target is gone already, which is what was wanted.
  for (event::TargetId target : released)
    (void)actions_.detach(target);
  return released;
}

// At once, because that is one stop of the target; one by one when some of them are gone already.
void Sessions::DeleteProbes(const std::set<event::ProbeId>& probes) {
  const std::vector<event::ProbeId> all(probes.begin(), probes.end());
  if (all.empty() || actions_.delete_probes(all).ok()) return;
  for (event::ProbeId probe : all)
    (void)actions_.delete_probes({probe});
}

}  // namespace probed::daemon
