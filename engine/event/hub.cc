#include "engine/event/hub.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "engine/event/queue.h"

namespace probed::event {

// Lock order: State::mutex, then a queue's own.
struct Hub::State {
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<Queue>> queues;
  std::unordered_map<ProbeId, uint64_t> lost;
  uint64_t last_sequence = 0;
  bool closed = false;

  void Offer(const std::shared_ptr<Queue>& queue, Item item) {
    for (ProbeId probe : queue->Push(std::move(item)))
      ++lost[probe];
  }
};

namespace {

class QueueSubscription final : public Subscription {
 public:
  QueueSubscription(std::shared_ptr<Queue> queue, std::function<void()> unsubscribe)
      : queue_(std::move(queue)), unsubscribe_(std::move(unsubscribe)) {}
  ~QueueSubscription() override { unsubscribe_(); }

  std::vector<Item> Next(size_t max, std::chrono::milliseconds timeout) override {
    return queue_->Next(max, timeout);
  }
  bool closed() const override { return queue_->drained(); }
  uint64_t lost() const override { return queue_->lost(); }
  void Cancel() override { queue_->Close(); }

 private:
  std::shared_ptr<Queue> queue_;
  std::function<void()> unsubscribe_;
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
  };
  return std::make_unique<QueueSubscription>(std::move(queue), std::move(unsubscribe));
}

void Hub::Publish(Item item) {
  std::lock_guard lock(state_->mutex);
  if (auto* hit = std::get_if<HitRecord>(&item)) hit->sequence = ++state_->last_sequence;
  std::shared_ptr<Queue> previous;  // copies for all but the last one, which gets the item itself
  for (const auto& queue : state_->queues) {
    if (!queue->Wants(item)) continue;
    if (previous) state_->Offer(previous, item);
    previous = queue;
  }
  if (previous) state_->Offer(previous, std::move(item));
}

void Hub::Close() {
  std::lock_guard lock(state_->mutex);
  state_->closed = true;
  for (const auto& queue : state_->queues)
    queue->Close();
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
