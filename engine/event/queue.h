#pragma once
// One subscriber's bounded queue. Filled by the publisher, drained by one reader; both may run at
// once. What does not fit is counted and reported in the stream at the place of the gap.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <vector>

#include "engine/event/event.h"
#include "engine/event/hub.h"

namespace probed::event {

class Queue {
 public:
  explicit Queue(SubscribeOptions options) : options_(std::move(options)) {}

  bool Wants(const Item& item) const { return !options_.wants || options_.wants(item); }
  // Takes the item or drops something; returns the hit records that were dropped.
  std::vector<ProbeId> Push(Item item);
  std::vector<Item> Next(size_t max, std::chrono::milliseconds timeout);
  void Close();
  bool drained() const;  // closed, and nothing is left to read
  uint64_t lost() const;

 private:
  bool HasItems() const { return !items_.empty() || front_loss_.lost > 0 || tail_loss_.lost > 0; }
  bool WaitForItems(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout);
  void DropFront(std::vector<ProbeId>& dropped);
  void Lose(const Item& item, LossNotice& gap, std::vector<ProbeId>& dropped);

  const SubscribeOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  size_t bytes_ = 0;
  LossNotice front_loss_;  // gap before the first item
  LossNotice tail_loss_;   // gap after the last item
  uint64_t lost_ = 0;
  bool closed_ = false;
  bool reader_idle_ = false;  // the reader sleeps until it is notified
  bool reader_busy_ = false;  // items came lately: the reader polls, so Push need not wake it
};

}  // namespace probed::event
