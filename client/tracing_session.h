#pragma once
// What `run` and `attach` hold at the daemon: targets, probes and one stream. The daemon lets go of
// all of it when the stream ends, so even a probectl that is killed leaves nothing behind.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/api.h"
#include "client/event_pump.h"
#include "client/talk.h"

namespace probed::client {

class TracingSession {
 public:
  TracingSession(Api& api, Talk& talk);

  // `request` without session.
  Reply<v1::Target> Attach(v1::AttachTargetRequest request);
  // Creates `request`'s probes (no parent, no session) in every target that was attached; what is
  // the kernel's once, and alone where nothing was.
  Reply<void> Define(v1::CreateProbesRequest request);
  // Subscribes to the probes' hits; `count` as in EventPump::Options.
  Reply<void> Stream(uint64_t count, EventWriter& writer, Output& output);
  // Probes that were created disabled.
  Reply<void> Enable();

  EventPump& pump() { return *pump_; }
  const std::vector<v1::Target>& targets() const { return targets_; }

  // The command has ended: takes what it left behind on the stream.
  void DrainEnded();
  // Reads the counters, lets go of every target, takes the events under way, prints the summary.
  // Returns how the stream ended, or else why a target could not be let go.
  Reply<void> Finish();

 private:
  Reply<void> Switch(bool enabled);
  Reply<void> NoteEarlyEnds();
  void RememberProbes();
  void NoteNotLeft(RemoteError error);
  Reply<void> Left();
  Reply<void> DefineIn(const std::string& parent, v1::CreateProbesRequest request);
  // Of targets and, where something is defined in it, the kernel.
  std::vector<std::string> Parents() const;
  bool Detach();  // true: nobody holds any of the targets any more
  void DeleteInKernel();
  void DrainCounted();
  void Summarize();

  Api& api_;
  Talk& talk_;
  std::string id_;
  std::chrono::steady_clock::time_point started_;
  std::vector<v1::Target> targets_;
  std::vector<v1::Probe> probes_;
  std::optional<RemoteError> not_left_;
  std::unique_ptr<EventPump> pump_;
};

}  // namespace probed::client
