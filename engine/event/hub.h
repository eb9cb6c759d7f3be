#pragma once
// Fan-out of events to bounded per-subscriber queues. Publish is called by the tracer thread and by
// the thread that drains rings, and never blocks on a slow subscriber; each subscriber sees its own
// losses in-stream. Thread-safe.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/packed_hits.h"

namespace probed::event {

enum class DropPolicy : uint8_t { kDropOldest, kDropNewest };

struct SubscribeOptions {
  size_t max_queued_bytes = 32u << 20;
  DropPolicy policy = DropPolicy::kDropOldest;
  // Empty = everything; asked on the publishing thread, must be cheap and pure. An answer about a
  // hit holds for all hits alike that are published together.
  std::function<bool(ProbeId, TargetId)> wants_hit;
  std::function<bool(const TargetNotice&)> wants_notice;
};

// What a subscriber takes at once: a run of hits, or what stands between them.
using Batch = std::variant<PackedHits, LossNotice, TargetNotice, UnwoundNotice>;

class Subscription {
 public:
  virtual ~Subscription() = default;  // unsubscribes
  // What is queued, in order, up to about `max_bytes`; empty after `timeout` or once the hub is
  // closed.
  virtual std::vector<Batch> NextBatches(size_t max_bytes, std::chrono::milliseconds timeout) = 0;
  // The same one by one, up to `max`; for consumers that need not be fast.
  virtual std::vector<Item> Next(size_t max, std::chrono::milliseconds timeout) = 0;
  virtual bool closed() const = 0;
  virtual uint64_t lost() const = 0;
  // Wakes a blocked Next() from another thread; the subscription is then closed.
  virtual void Cancel() = 0;
};

class Hub {
 public:
  Hub();
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  std::unique_ptr<Subscription> Subscribe(SubscribeOptions options);
  void Publish(const HitRecord& hit);
  void Publish(const TargetNotice& notice);
  // Hits that one of `probes` had in `target` (the kernel's: none), it is not known which, and that
  // nobody gets; told to whoever wants one of them.
  void Publish(const LossNotice& loss, std::span<const ProbeId> probes, TargetId target = {});
  // Added up, and told every 50 ms, and before the next change of a target: never lost.
  void Publish(const UnwoundNotice& unwound);
  // Assigns PackedHit::sequence in place.
  void Publish(std::span<const HitView> hits);
  void Close();  // ends every subscription after what is queued
  // Called whenever the last subscriber has gone, until Close(); on its thread, may not call back.
  void set_on_deserted(std::function<void()> callback);
  // Records of one probe that some subscriber lost, for the balance of counters.
  uint64_t LostOf(ProbeId probe) const;
  uint64_t published() const;
  size_t subscribers() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace probed::event
