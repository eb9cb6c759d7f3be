#include "engine/probe/shadow_table.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace probed::probe {
namespace {

using ring::ShadowFrame;
using ring::ShadowStack;
using ring::ThreadEntry;

// Beyond this, searches in the table get long.
constexpr uint32_t kMostOccupied = ring::kThreadEntries / 4 * 3;

uint64_t Load(uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

void Store(uint64_t& word, uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

uint32_t Next(uint32_t place) {
  return (place + 1) % ring::kThreadEntries;
}

uint32_t Previous(uint32_t place) {
  return (place + ring::kThreadEntries - 1) % ring::kThreadEntries;
}

}  // namespace

ThreadEntry& ShadowTable::EntryAt(uint32_t place) const {
  return *reinterpret_cast<ThreadEntry*>(control_.data() + geometry_.thread_offset(place));
}

ShadowStack& ShadowTable::StackAt(uint32_t stack) const {
  return *reinterpret_cast<ShadowStack*>(ring_.data() + geometry_.shadow_offset(stack));
}

std::optional<uint32_t> ShadowTable::TakeStack() {
  if (untouched_ < ring::kMaxShadowStacks) return untouched_++;
  if (free_.empty()) return std::nullopt;
  uint32_t stack = free_.front();
  free_.pop_front();
  return stack;
}

// The first entry on the base's way that nobody has.
std::optional<uint32_t> ShadowTable::PlaceFor(uint64_t base) const {
  uint32_t place = ring::ThreadHash(base);
  while (EntryAt(place).thread > ThreadEntry::kRemoved)
    place = Next(place);
  bool ends_searches = EntryAt(place).thread == ThreadEntry::kFree;
  if (ends_searches && occupied_ >= kMostOccupied) return std::nullopt;
  return place;
}

bool ShadowTable::Add(uint64_t base, pid_t owner) {
  if (base <= ThreadEntry::kRemoved || listed_.contains(base) || IsBarred(base)) return false;
  auto place = PlaceFor(base);
  auto stack = place ? TakeStack() : std::nullopt;
  if (!stack) return false;
  Clear(*stack);
  ThreadEntry& entry = EntryAt(*place);
  if (entry.thread == ThreadEntry::kFree) ++occupied_;
  Store(entry.shadow_stack, geometry_.shadow_offset(*stack));
  Store(entry.thread, base);
  listed_[base] = *stack;
  stacks_[*stack] = {.owner = owner, .base = base};
  return true;
}

void ShadowTable::Unlist(uint64_t base) {
  if (listed_.erase(base) == 0) return;
  uint32_t place = ring::ThreadHash(base);
  while (EntryAt(place).thread != base)
    place = Next(place);
  Store(EntryAt(place).thread, ThreadEntry::kRemoved);
  // A search that came as far as here ends at the next entry anyway.
  if (EntryAt(Next(place)).thread != ThreadEntry::kFree) return;
  for (; EntryAt(place).thread == ThreadEntry::kRemoved; place = Previous(place)) {
    Store(EntryAt(place).thread, ThreadEntry::kFree);
    --occupied_;
  }
}

std::optional<uint32_t> ShadowTable::Find(uint64_t base) const {
  auto found = listed_.find(base);
  return found == listed_.end() ? std::nullopt : std::optional(found->second);
}

void ShadowTable::Free(uint32_t stack) {
  auto found = stacks_.find(stack);
  if (found == stacks_.end()) return;
  if (Find(found->second.base) == stack) Unlist(found->second.base);
  stacks_.erase(found);
  free_.push_back(stack);
}

void ShadowTable::Bar(uint64_t base, pid_t because) {
  Unlist(base);
  barred_[base].insert(because);
}

void ShadowTable::Unbar(pid_t because) {
  for (auto& [base, tasks] : barred_)
    tasks.erase(because);
  std::erase_if(barred_, [](const auto& entry) { return entry.second.empty(); });
}

std::vector<ShadowFrame> ShadowTable::Frames(uint32_t stack) const {
  ShadowStack& shared = StackAt(stack);
  uint64_t depth = std::min<uint64_t>(Load(shared.depth), ring::kShadowFrames);
  std::vector<ShadowFrame> frames(depth);
  for (size_t i = 0; i < depth; ++i) {
    auto* from = reinterpret_cast<uint64_t*>(&shared.frames[i]);
    auto* to = reinterpret_cast<uint64_t*>(&frames[i]);
    for (size_t word = 0; word < sizeof(ShadowFrame) / sizeof(uint64_t); ++word)
      to[word] = Load(from[word]);
  }
  return frames;
}

void ShadowTable::Clear(uint32_t stack) {
  Store(StackAt(stack).depth, 0);
}

bool ShadowTable::Take(uint32_t stack, size_t index, uint64_t slot) {
  return std::atomic_ref(StackAt(stack).frames[index].slot).compare_exchange_strong(slot, 0);
}

std::map<uint32_t, uint64_t> ShadowTable::CountPending() const {
  std::map<uint32_t, uint64_t> pending;
  for (const auto& [stack, owner] : stacks_) {
    for (const ShadowFrame& frame : Frames(stack)) {
      if (frame.slot != 0) ++pending[static_cast<uint32_t>(frame.probe % ring::kMaxProbes)];
    }
  }
  return pending;
}

}  // namespace probed::probe
