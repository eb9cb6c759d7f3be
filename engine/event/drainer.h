#pragma once
// The thread that reads rings. It exists while there are rings, and looks the less often the less
// it finds: an idle target costs some ten wake-ups a second. Thread-safe.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/event/merger.h"

namespace probed::event {

inline constexpr SourceId kNoSource = 0;

class Drainer {
 public:
  explicit Drainer(Hub& hub) : hub_(hub), merger_(hub) {}
  ~Drainer();
  Drainer(const Drainer&) = delete;
  Drainer& operator=(const Drainer&) = delete;

  // From now on the hits of this process that come by traps must come through Publish.
  SourceId Add(std::shared_ptr<RingSource> source);
  // Nothing of the process records any more: publishes the rest of it and lets go of the source.
  void Remove(SourceId id);

  // A hit that came by a trap; `tsc` was read at the stop (ring::ReadTsc). It is published, with
  // times of that counter, in its place between the records of the rings. Of a process without a
  // ring (kNoSource): published at once, with its own times, unless some source concerns all.
  void Publish(SourceId id, uint64_t tsc, const HitRecord& hit);
  // A hit of this probe that came by a trap and is recorded nowhere, which its counter says.
  void Lose(ProbeId probe, TargetId target);
  // Returns when every hit up to now is published, but for those that a thread is just recording.
  // Of a flooded ring that is all it can hold: not for the tracer thread.
  void Flush();
  // The same for as long as `most`. False: there is more.
  bool FlushFor(std::chrono::nanoseconds most);
  // What is still in the rings of this source is counted, and told as lost. Costs much less than to
  // publish it.
  void Drop(SourceId id);
  // Sources know of every hit up to now, but for those that a thread is just recording, published
  // or not. Waits for a round at most.
  void Count();

 private:
  struct Trap {
    SourceId source = 0;
    uint64_t tsc = 0;
  };
  class Precedence;

  void Run(const std::stop_token& stop);
  Merger::Outcome Round();
  ring::ClockSample Begin();
  void HoldTraps(const std::vector<Trap>& traps, const PackedHits& hits);
  void RemoveCommon(SourceId id);
  void StopThread();
  void TellLosses();

  Hub& hub_;
  // Lock order: lifecycle_, rounds_, inbox_lock_.
  std::mutex lifecycle_;
  SourceId last_id_ = 0;
  std::jthread thread_;

  std::mutex rounds_;  // one round at a time, on whichever thread
  Merger merger_;

  std::mutex inbox_lock_;
  std::vector<Trap> traps_;
  PackedHits trap_hits_;
  SourceId common_ = kNoSource;  // the source that concerns all; set with all locks held

  std::mutex sleep_lock_;
  std::condition_variable_any sleep_;
  int others_ = 0;  // who run rounds, or wait to; the thread stands back meanwhile
};

}  // namespace probed::event
