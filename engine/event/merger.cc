#include "engine/event/merger.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace probed::event {
namespace {

// How much of each ring a round reads: enough to be cheap, and short for whoever waits for it.
constexpr uint64_t kRoundBytes = 1 << 20;
// Rounds that read any ring to its end.
constexpr int kRoundsOfALargeRing = 1024;
// A thread that stays in the middle of a record (it may be frozen) does not hold back others of
// its process for longer than this, nor for more of their records.
constexpr uint64_t kPatienceNs = 1'000'000'000;
constexpr size_t kMaxHeldBytes = 64 << 20;
// A look at all counters of a process, of which there may be tens of thousands.
constexpr uint64_t kLossesEveryNs = 50'000'000;

}  // namespace

void Merger::Add(SourceId id, std::shared_ptr<RingSource> ring, const ring::ClockSample& now) {
  clock_.Add(now);  // so that the first round has an interval
  Source& source = sources_[id];
  source.lanes.resize(ring->reader().cpu_count());
  source.ring = std::move(ring);
}

void Merger::Hold(SourceId id, uint64_t tsc, const HitView& hit) {
  auto it = sources_.find(id);
  if (it == sources_.end()) return;
  Source& source = it->second;
  source.entries.push_back({.tsc = tsc, .offset = source.held.end_offset()});
  source.held.Append(hit);
}

void Merger::Take(Source& source, const ring::RawRecord& record) {
  Lane& lane = source.lanes[record.cpu];
  lane.read_up_to = std::max(lane.read_up_to, record.tsc);
  lane.blocked_since_ns = 0;
  source.has_news = true;
  if (!record.scanned) source.ring->Count(record.probe);
  if (!wanted_) return;
  if (record.lost > 0) source.entries.push_back({.tsc = record.tsc, .lost = record.lost});
  RingHit hit;
  if (!source.ring->Decode(record, hit)) return;
  source.entries.push_back({.tsc = record.tsc, .offset = source.held.end_offset()});
  source.held.Append(hit.header, hit.payload, hit.schema);
}

void Merger::NoteCorrupt(Source& source, const Error& error) {
  source.corrupt = true;
  source.ring->OnCorrupt(error);
}

void Merger::Drain(Source& source, const ring::ClockSample& now) {
  // A stamp later than `now` is a lie then, which would be held for ever. Not so of a trap that
  // came between `now` and the round: it stays behind what its thread recorded meanwhile.
  for (size_t i = 0; i < source.carried; ++i)
    source.entries[i].tsc = std::min(source.entries[i].tsc, now.tsc);
  if (source.corrupt) return;
  ring::RecordReader& reader = source.ring->reader();
  Status status =
      reader.Drain(kRoundBytes, [&](const ring::RawRecord& record) { Take(source, record); });
  if (!status.ok()) return NoteCorrupt(source, status.error());
  NoteProgress(source, now);
}

void Merger::NoteProgress(Source& source, const ring::ClockSample& now) {
  const ring::RecordReader& reader = source.ring->reader();
  uint64_t read_up_to = now.tsc;
  for (uint32_t cpu = 0; cpu < reader.cpu_count(); ++cpu) {
    Lane& lane = source.lanes[cpu];
    if (reader.AllRead(cpu)) lane.read_up_to = now.tsc;
    if (!reader.Blocked(cpu)) {
      lane.blocked_since_ns = 0;
    } else if (lane.blocked_since_ns == 0) {
      lane.blocked_since_ns = now.time.monotonic_ns;
    }
    read_up_to = std::min(read_up_to, lane.read_up_to);
  }
  source.ring->OnReadUpTo(read_up_to);
}

// The age of a record says nothing of how long its thread has been in it: whoever reads may be
// late, and then the order of what has piled up is still to be kept.
uint64_t Merger::LimitOf(const Source& source, const ring::ClockSample& now) {
  uint64_t limit = now.tsc;
  if (source.corrupt || source.held.bytes() > kMaxHeldBytes) return limit;
  for (const Lane& lane : source.lanes) {
    const uint64_t since = lane.blocked_since_ns;
    const bool patient = since == 0 || since + kPatienceNs > now.time.monotonic_ns;
    if (patient) limit = std::min(limit, lane.read_up_to);
  }
  return limit;
}

void Merger::Gather(const Source& source, uint64_t limit) {
  for (const Entry& entry : source.entries) {
    if (entry.tsc > limit) continue;
    const HitView hit = entry.lost > 0 ? HitView() : source.held.At(entry.offset);
    ready_.push_back({entry.tsc, hit, entry.lost, &source});
  }
}

void Merger::KeepAfter(Source& source, uint64_t limit) {
  auto waits = [&](const Entry& entry) { return entry.tsc > limit; };
  if (std::none_of(source.entries.begin(), source.entries.end(), waits)) {
    source.held.Clear();
    source.entries.clear();
    source.carried = 0;
    return;
  }
  PackedHits kept;
  std::vector<Entry> entries;
  for (const Entry& entry : source.entries) {
    if (!waits(entry)) continue;
    entries.push_back({entry.tsc, kept.end_offset(), entry.lost});
    if (entry.lost == 0) kept.Append(source.held.At(entry.offset));
  }
  source.held = std::move(kept);
  source.entries = std::move(entries);
  source.carried = source.entries.size();
}

// Merges what stands in order already: mostly one run for each CPU, and one of traps. Stable, so
// that equal stamps of one thread stay in the order in which they were read.
void Merger::SortReady() {
  auto earlier = [](const Ready& a, const Ready& b) { return a.tsc < b.tsc; };
  const auto end = ready_.end();
  std::vector<std::vector<Ready>::iterator> runs{ready_.begin()};
  while (runs.back() != end)
    runs.push_back(std::is_sorted_until(runs.back(), end, earlier));
  while (runs.size() > 2) {
    size_t kept = 1;
    for (size_t i = 0; i + 1 < runs.size(); i += 2) {
      const size_t last = std::min(i + 2, runs.size() - 1);
      std::inplace_merge(runs[i], runs[i + 1], runs[last], earlier);
      runs[kept++] = runs[last];
    }
    runs.resize(kept);
  }
}

void Merger::PublishViews() {
  if (!views_.empty()) hub_.Publish(views_);
  views_.clear();
}

// In its place between hits.
void Merger::PublishLoss(const Ready& loss) {
  PublishViews();
  const uint64_t time = clock_.At(loss.tsc).monotonic_ns;
  hub_.Publish({.lost = loss.lost, .first_monotonic_ns = time, .last_monotonic_ns = time},
               loss.source->ring->probes());
}

void Merger::TellLosses(Source& source, uint64_t now_ns) {
  for (const ProbeLoss& loss : source.ring->TakeLosses()) {
    hub_.Publish({.lost = loss.lost, .first_monotonic_ns = now_ns, .last_monotonic_ns = now_ns},
                 {&loss.probe, 1}, loss.target);
  }
}

void Merger::TellLossesNowAndThen(uint64_t now_ns) {
  if (now_ns < losses_told_ns_ + kLossesEveryNs) return;
  losses_told_ns_ = now_ns;
  // A ring that was full is read from afterwards.
  for (auto& [id, source] : sources_) {
    if (std::exchange(source.has_news, false)) TellLosses(source, now_ns);
    TellUnwound(source);
  }
}

void Merger::TellUnwound(Source& source) {
  for (const UnwoundNotice& unwound : source.ring->TakeUnwound())
    hub_.Publish(unwound);
}

void Merger::TellLosses() {
  const uint64_t now_ns = MonotonicNow();
  for (auto& [id, source] : sources_) {
    TellLosses(source, now_ns);
    TellUnwound(source);
  }
}

size_t Merger::PublishReady() {
  SortReady();
  const size_t published = ready_.size();
  for (const Ready& ready : ready_) {
    if (ready.lost > 0) {
      PublishLoss(ready);
      continue;
    }
    const Timestamps time = clock_.At(ready.tsc);
    ready.hit.header->monotonic_ns = time.monotonic_ns;
    ready.hit.header->wall_ns = time.wall_ns;
    views_.push_back(ready.hit);
  }
  PublishViews();
  ready_.clear();
  return published;
}

Merger::Outcome Merger::Round(const ring::ClockSample& now) {
  clock_.Add(now);
  wanted_ = hub_.subscribers() > 0;
  Outcome outcome{.up_to = now.tsc};
  std::vector<std::pair<Source*, uint64_t>> limits;
  bool common = false;
  for (auto& [id, source] : sources_) {
    Drain(source, now);
    limits.emplace_back(&source, LimitOf(source, now));
    outcome.up_to = std::min(outcome.up_to, limits.back().second);
    outcome.more |= !source.corrupt && source.ring->reader().backlog() > kRoundBytes;
    common |= source.ring->ConcernsAll();
  }
  for (auto& [source, limit] : limits) {
    if (common) limit = outcome.up_to;
    Gather(*source, limit);
  }
  outcome.published = PublishReady();
  TellLossesNowAndThen(now.time.monotonic_ns);
  for (auto [source, limit] : limits)
    KeepAfter(*source, limit);
  return outcome;
}

void Merger::Drop(SourceId id) {
  auto found = sources_.find(id);
  if (found == sources_.end() || found->second.corrupt) return;
  Source& source = found->second;
  Entry loss;
  auto drop = [&](const ring::RawRecord& record) {
    if (!record.scanned) source.ring->Count(record.probe);
    loss.tsc = std::max(loss.tsc, record.tsc);
    loss.lost += record.lost;
    if (!wanted_ || !source.ring->Lose(record.probe)) ++loss.lost;
  };
  Status status = source.ring->reader().Drain(UINT64_MAX, drop);
  if (loss.lost > 0 && wanted_) source.entries.push_back(loss);
  if (!status.ok()) NoteCorrupt(source, status.error());
}

void Merger::Count() {
  for (auto& [id, source] : sources_) {
    if (source.corrupt) continue;
    RingSource& ring = *source.ring;
    Status status = ring.reader().Scan([&](uint32_t probe) { ring.Count(probe); });
    if (!status.ok()) NoteCorrupt(source, status.error());
  }
}

void Merger::Remove(SourceId id, const ring::ClockSample& now) {
  for (int round = 0; round < kRoundsOfALargeRing && Round(now).more; ++round) {
  }
  auto it = sources_.find(id);
  if (it == sources_.end()) return;
  Source& source = it->second;
  if (!source.corrupt) {
    Status status = source.ring->reader().DrainRest(
        [&](const ring::RawRecord& record) { Take(source, record); });
    if (!status.ok()) NoteCorrupt(source, status.error());
  }
  for (Entry& entry : source.entries)
    entry.tsc = std::min(entry.tsc, now.tsc);
  Gather(source, now.tsc);
  PublishReady();
  TellLosses(source, now.time.monotonic_ns);
  TellUnwound(source);
  sources_.erase(it);
}

void Merger::ReleaseMemory() {
  for (auto& [id, source] : sources_) {
    source.ring->reader().ReleasePages();
    if (source.held.empty()) source.held = PackedHits();
  }
  ready_ = {};
  views_ = {};
}

}  // namespace probed::event
