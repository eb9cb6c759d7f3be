#pragma once
// Fan-out of events to bounded per-subscriber queues. Publish is called by the tracer thread and
// never blocks on a slow subscriber; each subscriber sees its own losses in-stream.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/event/event.h"

namespace probed::event {

enum class DropPolicy : uint8_t { kDropOldest, kDropNewest };

struct SubscribeOptions {
  size_t max_queued_bytes = 32u << 20;
  DropPolicy policy = DropPolicy::kDropOldest;
  // Empty = everything; asked on the publishing thread, must be cheap and pure.
  std::function<bool(const Item&)> wants;
};

class Subscription {
 public:
  virtual ~Subscription() = default;  // unsubscribes
  // Up to `max` items in order; empty after `timeout` or once the hub is closed.
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
  void Publish(Item item);  // assigns HitRecord::sequence
  void Close();             // ends every subscription after what is queued
  // Records of one probe that some subscriber lost, for the balance of counters.
  uint64_t LostOf(ProbeId probe) const;
  uint64_t published() const;
  size_t subscribers() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace probed::event
