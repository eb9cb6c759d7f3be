#include "engine/event/queue.h"

#include <algorithm>
#include <utility>

namespace probed::event {
namespace {

// While events flow the reader looks every few milliseconds by itself: waking it for each event
// would cost the traced program a futex call per hit.
constexpr std::chrono::milliseconds kPollInterval{2};
constexpr int kPollsBeforeSleep = 10;

size_t SizeOf(const Item& item) {
  size_t size = sizeof(Item);
  if (const auto* hit = std::get_if<HitRecord>(&item)) size += hit->payload.size();
  if (const auto* notice = std::get_if<TargetNotice>(&item)) size += notice->detail.size();
  return size;
}

void Extend(LossNotice& gap, const LossNotice& more) {
  if (gap.lost == 0) {
    gap = more;
    return;
  }
  gap.lost += more.lost;
  if (gap.first_sequence == 0) {
    gap.first_sequence = more.first_sequence;
    gap.first_monotonic_ns = more.first_monotonic_ns;
  }
  if (more.last_sequence != 0) {
    gap.last_sequence = more.last_sequence;
    gap.last_monotonic_ns = more.last_monotonic_ns;
  }
}

// The gap that `item` leaves; a notice that is itself dropped keeps its numbers.
LossNotice GapOf(const Item& item) {
  if (const auto* notice = std::get_if<LossNotice>(&item)) return *notice;
  LossNotice gap{.lost = 1};
  if (const auto* hit = std::get_if<HitRecord>(&item)) {
    gap.first_sequence = gap.last_sequence = hit->sequence;
    gap.first_monotonic_ns = gap.last_monotonic_ns = hit->monotonic_ns;
  }
  return gap;
}

}  // namespace

void Queue::Lose(const Item& item, LossNotice& gap, std::vector<ProbeId>& dropped) {
  Extend(gap, GapOf(item));
  if (std::holds_alternative<LossNotice>(item)) return;
  ++lost_;
  if (const auto* hit = std::get_if<HitRecord>(&item)) dropped.push_back(hit->probe);
}

void Queue::DropFront(std::vector<ProbeId>& dropped) {
  bytes_ -= SizeOf(items_.front());
  Lose(items_.front(), front_loss_, dropped);
  items_.pop_front();
}

std::vector<ProbeId> Queue::Push(Item item) {
  std::vector<ProbeId> dropped;
  std::lock_guard lock(mutex_);
  if (closed_) return dropped;
  size_t size = SizeOf(item);
  bool oversized = size > options_.max_queued_bytes;
  if (options_.policy == DropPolicy::kDropOldest && !oversized) {
    while (bytes_ + size > options_.max_queued_bytes)
      DropFront(dropped);
  }
  if (oversized || bytes_ + size > options_.max_queued_bytes) {
    Lose(item, tail_loss_, dropped);
  } else {
    if (tail_loss_.lost > 0) {
      items_.emplace_back(std::exchange(tail_loss_, {}));
      bytes_ += SizeOf(items_.back());
    }
    items_.push_back(std::move(item));
    bytes_ += size;
  }
  if (reader_idle_) changed_.notify_one();
  return dropped;
}

bool Queue::WaitForItems(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout) {
  auto ready = [this] { return HasItems() || closed_; };
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (int poll = 0; reader_busy_ && poll < kPollsBeforeSleep && !ready(); ++poll) {
    auto wake = std::min(deadline, std::chrono::steady_clock::now() + kPollInterval);
    changed_.wait_until(lock, wake, [this] { return closed_; });
    if (std::chrono::steady_clock::now() >= deadline) break;
  }
  reader_idle_ = true;
  bool got = changed_.wait_until(lock, deadline, ready);
  reader_idle_ = false;
  reader_busy_ = got;
  return got;
}

std::vector<Item> Queue::Next(size_t max, std::chrono::milliseconds timeout) {
  std::vector<Item> out;
  std::unique_lock lock(mutex_);
  if (max == 0 || !WaitForItems(lock, timeout)) return out;
  out.reserve(std::min(max, items_.size() + 1));
  if (front_loss_.lost > 0) out.emplace_back(std::exchange(front_loss_, {}));
  while (out.size() < max && !items_.empty()) {
    bytes_ -= SizeOf(items_.front());
    out.push_back(std::move(items_.front()));
    items_.pop_front();
  }
  if (items_.empty() && tail_loss_.lost > 0 && out.size() < max) {
    out.emplace_back(std::exchange(tail_loss_, {}));
  }
  return out;
}

void Queue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Queue::drained() const {
  std::lock_guard lock(mutex_);
  return closed_ && !HasItems();
}

uint64_t Queue::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace probed::event
