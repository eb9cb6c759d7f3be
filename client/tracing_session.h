#pragma once
// What `run` and `attach` hold at the daemon: targets, probes and one stream. The daemon lets go of
// all of it when the stream ends, so even a probectl that is killed leaves nothing behind.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/api.h"
#include "client/event_pump.h"
#include "client/probe_total.h"
#include "client/talk.h"
#include "client/unseen_returns.h"

namespace probed::client {

// The refusal is because that process is no more.
bool HasEnded(const RemoteError& refusal);

class TracingSession {
 public:
  TracingSession(Api& api, Talk& talk);

  // `request` without session.
  Reply<v1::Target> Attach(v1::AttachTargetRequest request);
  // Creates `request`'s probes (no parent, no session) in every target that was attached; what is
  // the kernel's once, and alone where nothing was. Of several, those that have ended are left out.
  Reply<void> Define(v1::CreateProbesRequest request);
  // Once the stream runs: one more target, which gets what was defined in the others, enabled. A
  // process that is known already, or gone, is left alone. From then on the end of all targets is
  // not the end, and the counters are those of all together.
  Reply<void> Join(const v1::Process& process, v1::AttachTargetRequest request);
  // Takes the counters of targets that have ended, and forgets those.
  void CollectEnded();
  // Also the later targets' hits will be in the stream. Before Stream.
  void ExpectOthers() { others_come_ = true; }
  // Subscribes to the probes' hits; `count` as in EventPump::Options.
  Reply<void> Stream(uint64_t count, EventWriter& writer, Output& output);
  // Probes that were created disabled.
  Reply<void> Enable();

  // Says of probes that turned out to be breakpoints that they are slow, and why; once of each.
  void TellSlowProbes();

  EventPump& pump() { return *pump_; }
  // Those that have not been collected.
  const std::vector<v1::Target>& targets() const { return targets_; }

  // When it has been let go of: somebody else has it, too, so it stays attached.
  bool is_held_by_others(const v1::Target& target) const { return held_.contains(target.name()); }

  // The command has ended: takes what it left behind on the stream.
  void DrainEnded();
  // Reads the counters, lets go of every target, takes the events under way, prints the summary.
  // Returns how the stream ended, or else why a target could not be let go.
  Reply<void> Finish();
  // Instead of that, where nothing has begun that a summary could be about.
  void Abandon();

 private:
  Reply<void> Switch(const std::vector<std::string>& probes, bool enabled);
  void Disable();
  std::vector<std::string> NamesIn(const std::string& parent) const;
  Reply<void> DefineLater(const v1::Target& target);
  void Forget(const std::string& target);
  void GiveUp(const v1::Target& target);
  ProbeTotal TotalOf(const v1::Probe& probe) const;
  std::vector<ProbeTotal> Totals() const;
  std::string PlaceOf(const v1::Probe& probe) const;
  Reply<void> NoteEarlyEnds();
  void TellIfSlow(const v1::Probe& probe);
  void RememberProbes(const std::vector<std::string>& parents);
  void RememberOne(v1::Probe& probe, const std::map<std::string, v1::Probe>& known);
  void NoteNotLeft(RemoteError error);
  Reply<void> Left();
  Reply<void> DefineIn(const std::string& parent, v1::CreateProbesRequest request);
  // Of targets and, where something is defined in it, the kernel.
  std::vector<std::string> Parents() const;
  bool Detach();  // true: nobody holds any of the targets any more
  void DeleteInKernel();
  void DrainCounted();
  uint64_t LostOfAll(const std::vector<ProbeTotal>& totals) const;
  void Summarize();

  Api& api_;
  Talk& talk_;
  std::string id_;
  std::chrono::steady_clock::time_point started_;
  std::vector<v1::Target> targets_;
  std::vector<v1::Probe> probes_;
  bool others_come_ = false;
  v1::CreateProbesRequest later_;  // for targets that come
  std::vector<ProbeTotal> past_;   // of targets that have ended: one for each definition
  size_t past_targets_ = 0;
  std::optional<RemoteError> not_left_;
  std::set<std::string> held_;     // targets, by others
  std::set<std::string> deleted_;  // probes, by somebody else
  bool daemon_ended_ = false;
  std::set<std::string> slow_;  // that were told: probes, or what several have in common
  UnseenReturns unseen_returns_;
  bool all_decided_ = false;
  int looks_ = 0;
  std::unique_ptr<EventPump> pump_;
};

}  // namespace probed::client
