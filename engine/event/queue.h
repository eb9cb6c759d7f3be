#pragma once
// One subscriber's bounded queue. Filled by the publisher, drained by one reader; both may run at
// once. What does not fit is counted and reported in the stream at the place of the gap.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/hub.h"

namespace probed::event {

using LossCounts = std::unordered_map<ProbeId, uint64_t>;

class Queue {
 public:
  explicit Queue(SubscribeOptions options) : options_(std::move(options)) {}

  // Takes what the subscriber wants or drops something; adds the records dropped to `lost`.
  void Push(std::span<const HitView> hits, LossCounts& lost);
  void Push(const TargetNotice& notice, LossCounts& lost);
  // Of the subscriber's too, if it wants one of `probes` in `target`.
  void Push(const LossNotice& loss, std::span<const ProbeId> probes, TargetId target);
  void Push(const UnwoundNotice& unwound);
  std::vector<Batch> Next(size_t max_bytes, std::chrono::milliseconds timeout);
  void Close();
  bool drained() const;  // closed, and nothing is left to read
  uint64_t lost() const;

 private:
  using Clock = std::chrono::steady_clock;
  using UnwoundKey = std::tuple<ProbeId, TargetId, int>;  // of UnwoundNotice, with its thread

  bool HasBatches() const {
    return !batches_.empty() || !front_loss_.empty() || !tail_loss_.empty();
  }
  bool WaitForBatches(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout);
  bool MakeRoom(size_t bytes, LossCounts& lost);
  void DropFront(LossCounts& lost);
  void PushHit(const HitView& hit, LossCounts& lost);
  void Append(Batch batch);
  PackedHits& OpenRun();
  void TellTailLoss();
  bool IsUnwoundDue(Clock::time_point now) const {
    return !unwound_.empty() && (closed_ || now >= unwound_due_);
  }
  void TellUnwound(std::vector<Batch>& out);
  void WakeReader();

  const SubscribeOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  size_t bytes_ = 0;
  LossNotice front_loss_;  // gap before the first batch
  LossNotice tail_loss_;   // gap after the last batch
  uint64_t lost_ = 0;
  std::map<UnwoundKey, UnwoundNotice> unwound_;  // not told yet
  Clock::time_point unwound_due_{};
  bool closed_ = false;
  bool reader_idle_ = false;  // the reader sleeps until it is notified
  bool reader_busy_ = false;  // hits came lately: the reader polls, so Push need not wake it
};

}  // namespace probed::event
