#include "engine/probe/thread_history.h"

#include <algorithm>

namespace probed::probe {

void ThreadHistory::Begin(uint64_t base, pid_t tid, uint64_t tsc) {
  std::lock_guard lock(mutex_);
  std::vector<Span>& spans = spans_[base];
  for (Span& span : spans)
    span.end = std::min(span.end, tsc);
  spans.push_back({.identity = {.tid = tid, .comm = {}}, .begin = tsc, .end = kOpen});
}

void ThreadHistory::Borrow(uint64_t base, pid_t tid, uint64_t tsc) {
  std::lock_guard lock(mutex_);
  spans_[base].push_back({.identity = {.tid = tid, .comm = {}}, .begin = tsc, .end = kOpen});
}

void ThreadHistory::End(pid_t tid, uint64_t tsc) {
  std::lock_guard lock(mutex_);
  for (auto& [base, spans] : spans_) {
    for (Span& span : spans) {
      if (span.identity.tid == tid) span.end = std::min(span.end, tsc);
    }
  }
}

std::optional<pid_t> ThreadHistory::Owner(uint64_t base) const {
  auto identity = Find(base, kOpen - 1);
  return identity ? std::optional(identity->tid) : std::nullopt;
}

// Of several the one that began last: a borrower, or the next owner when the end of the former has
// not been told yet.
std::optional<ThreadHistory::Identity> ThreadHistory::Find(uint64_t base, uint64_t tsc) const {
  std::lock_guard lock(mutex_);
  auto found = spans_.find(base);
  if (found == spans_.end()) return std::nullopt;
  for (auto span = found->second.rbegin(); span != found->second.rend(); ++span) {
    if (span->begin <= tsc && tsc < span->end) return span->identity;
  }
  return std::nullopt;
}

void ThreadHistory::Rename(pid_t tid, const Comm& comm) {
  std::lock_guard lock(mutex_);
  for (auto& [base, spans] : spans_) {
    for (Span& span : spans) {
      if (span.identity.tid == tid) span.identity.comm = comm;
    }
  }
}

void ThreadHistory::Prune(uint64_t tsc) {
  std::lock_guard lock(mutex_);
  for (auto entry = spans_.begin(); entry != spans_.end();) {
    std::erase_if(entry->second, [&](const Span& span) { return span.end < tsc; });
    entry = entry->second.empty() ? spans_.erase(entry) : std::next(entry);
  }
}

}  // namespace probed::probe
