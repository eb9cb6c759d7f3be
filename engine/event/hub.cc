#include "engine/event/hub.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "engine/event/queue.h"

namespace probed::event {

// Lock order: State::mutex, then a queue's own.
struct Hub::State {
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<Queue>> queues;
  LossCounts lost;
  uint64_t last_sequence = 0;
  std::function<void()> on_deserted;
  bool closed = false;
};

namespace {

class QueueSubscription final : public Subscription {
 public:
  QueueSubscription(std::shared_ptr<Queue> queue, std::function<void()> unsubscribe)
      : queue_(std::move(queue)), unsubscribe_(std::move(unsubscribe)) {}
  ~QueueSubscription() override { unsubscribe_(); }

  std::vector<Batch> NextBatches(size_t max_bytes, std::chrono::milliseconds timeout) override {
    return queue_->Next(max_bytes, timeout);
  }
  std::vector<Item> Next(size_t max, std::chrono::milliseconds timeout) override {
    if (max > 0 && unread_.empty()) Refill(timeout);
    std::vector<Item> items;
    for (; items.size() < max && !unread_.empty(); unread_.pop_front())
      items.push_back(std::move(unread_.front()));
    return items;
  }
  bool closed() const override { return unread_.empty() && queue_->drained(); }
  uint64_t lost() const override { return queue_->lost(); }
  void Cancel() override { queue_->Close(); }

 private:
  void Refill(std::chrono::milliseconds timeout) {
    for (Batch& batch : queue_->Next(1, timeout)) {
      if (auto* hits = std::get_if<PackedHits>(&batch)) {
        hits->ForEach([this](const HitView& hit) { unread_.emplace_back(Unpack(hit)); });
      } else if (auto* loss = std::get_if<LossNotice>(&batch)) {
        unread_.emplace_back(*loss);
      } else if (auto* unwound = std::get_if<UnwoundNotice>(&batch)) {
        unread_.emplace_back(std::move(*unwound));
      } else {
        unread_.emplace_back(std::move(std::get<TargetNotice>(batch)));
      }
    }
  }

  std::shared_ptr<Queue> queue_;
  std::function<void()> unsubscribe_;
  std::deque<Item> unread_;  // what Next has taken and not handed out
};

}  // namespace

Hub::Hub() : state_(std::make_shared<State>()) {}

Hub::~Hub() {
  Close();
}

std::unique_ptr<Subscription> Hub::Subscribe(SubscribeOptions options) {
  auto queue = std::make_shared<Queue>(std::move(options));
  {
    std::lock_guard lock(state_->mutex);
    if (state_->closed) queue->Close();
    state_->queues.push_back(queue);
  }
  // The subscription may outlive the hub: it keeps the state, not the hub.
  auto unsubscribe = [state = state_, raw = queue.get()] {
    std::lock_guard lock(state->mutex);
    std::erase_if(state->queues, [raw](const auto& entry) { return entry.get() == raw; });
    if (state->queues.empty() && state->on_deserted) state->on_deserted();
  };
  return std::make_unique<QueueSubscription>(std::move(queue), std::move(unsubscribe));
}

void Hub::Publish(std::span<const HitView> hits) {
  std::lock_guard lock(state_->mutex);
  for (const HitView& hit : hits)
    hit.header->sequence = ++state_->last_sequence;
  for (const auto& queue : state_->queues)
    queue->Push(hits, state_->lost);
}

void Hub::Publish(const HitRecord& hit) {
  PackedHits hits;
  hits.Append(hit);
  const HitView view = hits.front();
  Publish({&view, 1});
}

void Hub::Publish(const TargetNotice& notice) {
  std::lock_guard lock(state_->mutex);
  for (const auto& queue : state_->queues)
    queue->Push(notice, state_->lost);
}

void Hub::Publish(const LossNotice& loss, std::span<const ProbeId> probes, TargetId target) {
  std::lock_guard lock(state_->mutex);
  for (const auto& queue : state_->queues)
    queue->Push(loss, probes, target);
}

void Hub::Publish(const UnwoundNotice& unwound) {
  std::lock_guard lock(state_->mutex);
  for (const auto& queue : state_->queues)
    queue->Push(unwound);
}

void Hub::Close() {
  std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->on_deserted = nullptr;
  for (const auto& queue : state_->queues)
    queue->Close();
}

void Hub::set_on_deserted(std::function<void()> callback) {
  std::lock_guard lock(state_->mutex);
  state_->on_deserted = std::move(callback);
}

uint64_t Hub::LostOf(ProbeId probe) const {
  std::lock_guard lock(state_->mutex);
  auto found = state_->lost.find(probe);
  return found == state_->lost.end() ? 0 : found->second;
}

uint64_t Hub::published() const {
  std::lock_guard lock(state_->mutex);
  return state_->last_sequence;
}

size_t Hub::subscribers() const {
  std::lock_guard lock(state_->mutex);
  return state_->queues.size();
}

}  // namespace probed::event
