#include "engine/event/drainer.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace probed::event {
namespace {

using std::chrono::microseconds;

// A round is made worth its cost: more events, shorter sleep. A ring holds much more than comes in
// the longest one.
constexpr microseconds kShortest{500};
constexpr microseconds kLongest{64'000};
constexpr size_t kFewEvents = 64;
constexpr size_t kManyEvents = 512;
// Reads what any ring held when it began.
constexpr int kMaxFlushRounds = 1024;
// For a thread that stands in the middle of a record, and may never go on.
constexpr int kMaxWaitingRounds = 100;
// Then what bursts have used goes back to the system.
constexpr microseconds kIdleTime{2'000'000};

microseconds NextSleep(microseconds sleep, const Merger::Outcome& outcome) {
  if (outcome.more) return microseconds(0);
  if (outcome.published > kManyEvents) return std::max(sleep / 2, kShortest);
  if (outcome.published < kFewEvents) return std::clamp(sleep * 2, kShortest, kLongest);
  return std::max(sleep, kShortest);
}

}  // namespace

// The thread reads a flooded ring round after round: it would take the lock again before anybody
// who waits for it has woken.
class Drainer::Precedence {
 public:
  explicit Precedence(Drainer& drainer) : drainer_(drainer) { Change(+1); }
  ~Precedence() {
    Change(-1);
    drainer_.sleep_.notify_all();
  }
  Precedence(const Precedence&) = delete;
  Precedence& operator=(const Precedence&) = delete;

 private:
  void Change(int by) {
    std::lock_guard lock(drainer_.sleep_lock_);
    drainer_.others_ += by;
  }
  Drainer& drainer_;
};

Drainer::~Drainer() {
  StopThread();
}

SourceId Drainer::Add(std::shared_ptr<RingSource> source) {
  std::lock_guard lifecycle(lifecycle_);
  const Precedence precedence(*this);
  const SourceId id = ++last_id_;
  const bool concerns_all = source->ConcernsAll();
  {
    std::lock_guard round(rounds_);
    merger_.Add(id, std::move(source), ring::TakeClockSample());
    std::lock_guard inbox(inbox_lock_);
    if (concerns_all) common_ = id;
  }
  if (!thread_.joinable())
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  return id;
}

void Drainer::Remove(SourceId id) {
  std::lock_guard lifecycle(lifecycle_);
  const Precedence precedence(*this);
  bool last = false;
  {
    std::lock_guard round(rounds_);
    if (id == common_) {
      RemoveCommon(id);
    } else {
      Begin();
      merger_.Remove(id, ring::TakeClockSample());  // later than every trap that Begin() took
    }
    last = merger_.empty();
  }
  if (last) StopThread();
}

void Drainer::StopThread() {
  if (!thread_.joinable()) return;
  thread_.request_stop();  // wakes it from its sleep too
  thread_.join();
}

// What comes by traps goes its own way again; not before what came until now is published.
void Drainer::RemoveCommon(SourceId id) {
  merger_.Round(Begin());  // so that whoever comes by a trap waits for little
  std::lock_guard inbox(inbox_lock_);
  common_ = kNoSource;
  HoldTraps(std::exchange(traps_, {}), std::exchange(trap_hits_, {}));
  merger_.Remove(id, ring::TakeClockSample());
}

void Drainer::Publish(SourceId id, uint64_t tsc, const HitRecord& hit) {
  {
    std::lock_guard lock(inbox_lock_);
    if (id == kNoSource) id = common_;
    if (id != kNoSource) {
      traps_.push_back({id, tsc});
      trap_hits_.Append(hit);
      return;
    }
  }
  hub_.Publish(hit);
}

void Drainer::HoldTraps(const std::vector<Trap>& traps, const PackedHits& hits) {
  auto trap = traps.begin();
  hits.ForEach([&](const HitView& hit) {
    merger_.Hold(trap->source, trap->tsc, hit);
    ++trap;
  });
}

// The time first, then what came before it.
ring::ClockSample Drainer::Begin() {
  const ring::ClockSample now = ring::TakeClockSample();
  std::vector<Trap> traps;
  PackedHits hits;
  {
    std::lock_guard lock(inbox_lock_);
    std::swap(traps, traps_);
    std::swap(hits, trap_hits_);
  }
  HoldTraps(traps, hits);
  return now;
}

Merger::Outcome Drainer::Round() {
  std::lock_guard round(rounds_);
  return merger_.Round(Begin());
}

void Drainer::Flush() {
  (void)FlushFor(std::chrono::nanoseconds::max());
}

bool Drainer::FlushFor(std::chrono::nanoseconds most) {
  const Precedence precedence(*this);
  const uint64_t begin = ring::ReadTsc();
  const auto start = std::chrono::steady_clock::now();
  int waiting = 0;
  for (int round = 0; round < kMaxFlushRounds && waiting < kMaxWaitingRounds; ++round) {
    const Merger::Outcome outcome = Round();
    if (outcome.up_to >= begin) {
      TellLosses();
      return true;
    }
    if (outcome.more && std::chrono::steady_clock::now() - start > most) return false;
    if (!outcome.more) ++waiting;
    std::this_thread::yield();
  }
  return true;
}

void Drainer::TellLosses() {
  std::lock_guard round(rounds_);
  merger_.TellLosses();
}

void Drainer::Lose(ProbeId probe, TargetId target) {
  hub_.Publish(LossNotice{.lost = 1}, {&probe, 1}, target);
}

void Drainer::Drop(SourceId id) {
  const Precedence precedence(*this);
  std::lock_guard round(rounds_);
  merger_.Drop(id);
}

void Drainer::Count() {
  const Precedence precedence(*this);
  std::lock_guard round(rounds_);
  merger_.Count();
}

void Drainer::Run(const std::stop_token& stop) {
  microseconds sleep = kShortest;
  microseconds idle{0};
  while (!stop.stop_requested()) {
    const Merger::Outcome outcome = Round();
    sleep = NextSleep(sleep, outcome);
    idle = outcome.published > 0 ? microseconds(0) : idle + sleep;
    if (idle > kIdleTime) {
      std::lock_guard round(rounds_);
      merger_.ReleaseMemory();
      idle = microseconds(0);
    }
    std::unique_lock lock(sleep_lock_);
    sleep_.wait_for(lock, stop, sleep, [] { return false; });
    sleep_.wait(lock, stop, [this] { return others_ == 0; });
  }
}

}  // namespace probed::event
