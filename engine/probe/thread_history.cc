#include "engine/probe/thread_history.h"

#include <algorithm>
#include <utility>

namespace probed::probe {
namespace {

// Of a program that gives its threads new bases all the time the latest are remembered.
constexpr size_t kMaxBases = 256;

// Of several the one that began last: a borrower, or the next owner when the end of the former has
// not been told yet.
template <class Spans>
auto* SpanAt(Spans& spans, uint64_t base, uint64_t tsc) {
  auto found = spans.find(base);
  if (found == spans.end()) return decltype(&*found->second.begin()){nullptr};
  auto span = std::find_if(
      found->second.rbegin(), found->second.rend(),
      [&](const auto& candidate) { return candidate.begin <= tsc && tsc < candidate.end; });
  return span != found->second.rend() ? &*span : nullptr;
}

}  // namespace

void ThreadHistory::Open(uint64_t base, pid_t tid, uint64_t tsc) {
  std::vector<uint64_t>& bases = bases_of_[tid];
  if (bases.size() == kMaxBases) {
    EndAt(bases.front(), tid, tsc);
    bases.erase(bases.begin());
  }
  bases.push_back(base);
  spans_[base].push_back({.identity = {.tid = tid, .comm = {}}, .begin = tsc, .end = kOpen});
}

void ThreadHistory::Close(uint64_t base, Span& span, uint64_t tsc) {
  if (span.end != kOpen) {
    span.end = std::min(span.end, tsc);
    return;
  }
  span.end = tsc;
  ended_.push_back({.base = base, .end = tsc});
}

void ThreadHistory::Begin(uint64_t base, pid_t tid, uint64_t tsc) {
  std::lock_guard lock(mutex_);
  for (Span& span : spans_[base])
    Close(base, span, tsc);
  Open(base, tid, tsc);
}

void ThreadHistory::Borrow(uint64_t base, pid_t tid, uint64_t tsc) {
  std::lock_guard lock(mutex_);
  Open(base, tid, tsc);
}

void ThreadHistory::EndAt(uint64_t base, pid_t tid, uint64_t tsc) {
  auto spans = spans_.find(base);
  if (spans == spans_.end()) return;
  for (Span& span : spans->second) {
    if (span.identity.tid == tid) Close(base, span, tsc);
  }
  if (ended_.size() > kMaxEnded) ForgetEndedBefore(ended_[ended_.size() - kMaxEnded].end);
}

void ThreadHistory::End(pid_t tid, uint64_t tsc) {
  std::lock_guard lock(mutex_);
  auto bases = bases_of_.extract(tid);
  if (bases.empty()) return;
  for (uint64_t base : bases.mapped())
    EndAt(base, tid, tsc);
}

std::optional<pid_t> ThreadHistory::Owner(uint64_t base) const {
  auto identity = Find(base, kOpen - 1);
  return identity ? std::optional(identity->tid) : std::nullopt;
}

std::optional<ThreadHistory::Identity> ThreadHistory::Find(uint64_t base, uint64_t tsc) const {
  std::lock_guard lock(mutex_);
  const Span* span = SpanAt(spans_, base, tsc);
  return span != nullptr ? std::optional(span->identity) : std::nullopt;
}

void ThreadHistory::Rename(uint64_t base, uint64_t tsc, const Comm& comm) {
  std::lock_guard lock(mutex_);
  Span* span = SpanAt(spans_, base, tsc);
  if (span != nullptr) span->identity.comm = comm;
}

void ThreadHistory::Prune(uint64_t tsc) {
  std::lock_guard lock(mutex_);
  ForgetEndedBefore(tsc);
}

void ThreadHistory::ForgetEndedBefore(uint64_t tsc) {
  while (!ended_.empty() && ended_.front().end < tsc) {
    auto spans = spans_.find(ended_.front().base);
    ended_.pop_front();
    if (spans == spans_.end()) continue;
    std::erase_if(spans->second, [&](const Span& span) { return span.end < tsc; });
    if (spans->second.empty()) spans_.erase(spans);
  }
}

size_t ThreadHistory::ended() const {
  std::lock_guard lock(mutex_);
  return ended_.size();
}

}  // namespace probed::probe
