#include "engine/event/queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace probed::event {
namespace {

// While events flow the reader looks every few milliseconds by itself: waking it for each event
// would cost the traced program a futex call per hit.
constexpr std::chrono::milliseconds kPollInterval{2};
constexpr int kPollsBeforeSleep = 10;

// Enough that the cost of a batch is nothing beside its records', and little beside a queue.
constexpr size_t kRunBytes = 128 << 10;

// A program that throws all the time does not fill the stream with it.
constexpr std::chrono::milliseconds kUnwoundEvery{50};
// Of more than that many threads it is not told which.
constexpr size_t kMostUnwound = 1024;

size_t SizeOf(const TargetNotice& notice) {
  return sizeof(Batch) + notice.detail.size();
}
size_t SizeOf(const LossNotice&) {
  return sizeof(Batch);
}
size_t SizeOf(const UnwoundNotice&) {
  return sizeof(Batch);
}
size_t SizeOf(const PackedHits& hits) {
  return hits.bytes();
}
size_t SizeOf(const Batch& batch) {
  return std::visit([](const auto& content) { return SizeOf(content); }, batch);
}

void Extend(LossNotice& gap, const LossNotice& more) {
  gap.lost += more.lost;
  gap.notices += more.notices;
  if (gap.first_sequence == 0) gap.first_sequence = more.first_sequence;
  if (more.last_sequence != 0) gap.last_sequence = more.last_sequence;
  if (gap.first_monotonic_ns == 0) gap.first_monotonic_ns = more.first_monotonic_ns;
  if (more.last_monotonic_ns != 0) gap.last_monotonic_ns = more.last_monotonic_ns;
}

LossNotice GapOf(const lang::PackedHit& hit) {
  return {.lost = 1,
          .first_sequence = hit.sequence,
          .last_sequence = hit.sequence,
          .first_monotonic_ns = hit.monotonic_ns,
          .last_monotonic_ns = hit.monotonic_ns};
}

}  // namespace

void Queue::DropFront(LossCounts& lost) {
  Batch& front = batches_.front();
  if (auto* run = std::get_if<PackedHits>(&front); run != nullptr && !run->empty()) {
    const lang::PackedHit& hit = *run->front().header;
    Extend(front_loss_, GapOf(hit));
    ++lost_;
    ++lost[hit.probe];
    bytes_ -= hit.record_bytes;
    run->PopFront();
    if (!run->empty()) return;
  } else if (const auto* loss = std::get_if<LossNotice>(&front)) {
    Extend(front_loss_, *loss);  // a notice that is itself dropped keeps its numbers
    bytes_ -= SizeOf(*loss);
  } else if (const auto* notice = std::get_if<TargetNotice>(&front)) {
    Extend(front_loss_, {.notices = 1});
    bytes_ -= SizeOf(*notice);
  }
  batches_.pop_front();
}

bool Queue::MakeRoom(size_t bytes, LossCounts& lost) {
  if (bytes > options_.max_queued_bytes) return false;
  if (options_.policy == DropPolicy::kDropOldest) {
    while (bytes_ + bytes > options_.max_queued_bytes)
      DropFront(lost);
  }
  return bytes_ + bytes <= options_.max_queued_bytes;
}

void Queue::Append(Batch batch) {
  bytes_ += SizeOf(batch);
  batches_.push_back(std::move(batch));
}

// The gap is told where it is, before what comes now.
void Queue::TellTailLoss() {
  if (!tail_loss_.empty()) Append(std::exchange(tail_loss_, {}));
}

PackedHits& Queue::OpenRun() {
  auto* run = batches_.empty() ? nullptr : std::get_if<PackedHits>(&batches_.back());
  if (run == nullptr || run->bytes() >= kRunBytes) Append(PackedHits());
  return std::get<PackedHits>(batches_.back());
}

void Queue::PushHit(const HitView& hit, LossCounts& lost) {
  if (!MakeRoom(hit.header->record_bytes, lost)) {
    Extend(tail_loss_, GapOf(*hit.header));
    ++lost_;
    ++lost[hit.header->probe];
    return;
  }
  TellTailLoss();
  OpenRun().Append(hit);
  bytes_ += hit.header->record_bytes;
}

void Queue::Push(std::span<const HitView> hits, LossCounts& lost) {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  // Neighbours are mostly alike: the subscriber is asked once about each run of them.
  ProbeId asked_probe = 0;
  TargetId asked_target;
  bool wanted = !options_.wants_hit;
  bool asked = wanted;
  for (const HitView& hit : hits) {
    if (options_.wants_hit &&
        (!asked || hit.header->probe != asked_probe || hit.target() != asked_target)) {
      asked = true;
      asked_probe = hit.header->probe;
      asked_target = hit.target();
      wanted = options_.wants_hit(asked_probe, asked_target);
    }
    if (wanted) PushHit(hit, lost);
  }
  WakeReader();
}

void Queue::Push(const TargetNotice& notice, LossCounts& lost) {
  std::lock_guard lock(mutex_);
  if (closed_ || (options_.wants_notice && !options_.wants_notice(notice))) return;
  if (MakeRoom(SizeOf(notice), lost)) {
    TellTailLoss();
    Append(notice);
  } else {
    Extend(tail_loss_, {.notices = 1});
  }
  WakeReader();
}

void Queue::Push(const UnwoundNotice& unwound) {
  std::lock_guard lock(mutex_);
  if (closed_ || (options_.wants_hit && !options_.wants_hit(unwound.probe, unwound.target))) return;
  int tid = unwound_.size() < kMostUnwound ? unwound.tid : 0;
  bool is_first = unwound_.empty();  // whoever sleeps knows of the next 50 ms then
  auto [entry, is_new] = unwound_.try_emplace({unwound.probe, unwound.target, tid}, unwound);
  entry->second.tid = tid;
  if (!is_new) entry->second.calls += unwound.calls;
  if (is_first && reader_idle_) changed_.notify_one();
}

void Queue::Push(const LossNotice& loss, std::span<const ProbeId> probes, TargetId target) {
  std::lock_guard lock(mutex_);
  const auto wanted = [&](ProbeId probe) { return options_.wants_hit(probe, target); };
  if (closed_ || (options_.wants_hit && std::none_of(probes.begin(), probes.end(), wanted))) return;
  Extend(tail_loss_, loss);
  lost_ += loss.lost;
  WakeReader();
}

void Queue::WakeReader() {
  if (reader_idle_ && HasBatches()) changed_.notify_one();
}

bool Queue::WaitForBatches(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout) {
  auto ready = [this] { return HasBatches() || closed_ || IsUnwoundDue(Clock::now()); };
  auto deadline = Clock::now() + timeout;
  for (int poll = 0; reader_busy_ && poll < kPollsBeforeSleep && !ready(); ++poll) {
    auto wake = std::min(deadline, Clock::now() + kPollInterval);
    changed_.wait_until(lock, wake, [this] { return closed_; });
    if (Clock::now() >= deadline) break;
  }
  reader_idle_ = true;
  bool got = ready();
  while (!got && Clock::now() < deadline) {
    auto wake = unwound_.empty() ? deadline : std::min(deadline, unwound_due_);
    changed_.wait_until(lock, wake);
    got = ready();
  }
  reader_idle_ = false;
  reader_busy_ = got;
  return got;
}

std::vector<Batch> Queue::Next(size_t max_bytes, std::chrono::milliseconds timeout) {
  std::vector<Batch> out;
  std::unique_lock lock(mutex_);
  if (!WaitForBatches(lock, timeout)) return out;
  if (!front_loss_.empty()) out.emplace_back(std::exchange(front_loss_, {}));
  for (size_t taken = 0; taken < max_bytes && !batches_.empty();) {
    const size_t size = SizeOf(batches_.front());
    taken += size;
    bytes_ -= size;
    out.push_back(std::move(batches_.front()));
    batches_.pop_front();
  }
  if (batches_.empty() && !tail_loss_.empty()) out.emplace_back(std::exchange(tail_loss_, {}));
  TellUnwound(out);
  return out;
}

// Before the end of a target, behind which nothing of it is looked for.
void Queue::TellUnwound(std::vector<Batch>& out) {
  auto is_change = [](const Batch& batch) { return std::holds_alternative<TargetNotice>(batch); };
  auto place = std::find_if(out.begin(), out.end(), is_change);
  if (place == out.end() && !IsUnwoundDue(Clock::now())) return;
  std::vector<Batch> notices;
  for (auto& [key, notice] : std::exchange(unwound_, {}))
    notices.emplace_back(std::move(notice));
  unwound_due_ = Clock::now() + kUnwoundEvery;
  out.insert(place, std::make_move_iterator(notices.begin()),
             std::make_move_iterator(notices.end()));
}

void Queue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool Queue::drained() const {
  std::lock_guard lock(mutex_);
  return closed_ && !HasBatches() && unwound_.empty();
}

uint64_t Queue::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

}  // namespace probed::event
