#include "engine/probe/return_stack.h"

#include <algorithm>
#include <utility>

namespace probed::probe {
namespace {

constexpr int kMostReapedAtOnce = 64;
// A dead frame deeper than this is harmless: Take() prefers the newest.
constexpr size_t kMostDroppedAtOnce = 256;

}  // namespace

OutstandingReturn::~OutstandingReturn() {
  if (!probe_) return;
  --probe_->outstanding;
  if (!inherited_) ++probe_->counters.missed;
}

OutstandingReturn OutstandingReturn::Inherit() const {
  OutstandingReturn copy(probe_);
  copy.inherited_ = true;
  return copy;
}

bool OutstandingReturn::Unwind() {
  if (inherited_) return false;
  ++probe_->counters.unwound;
  return true;
}

std::shared_ptr<Probe> OutstandingReturn::Finish() {
  --probe_->outstanding;
  return std::move(probe_);
}

PendingReturn PendingReturn::Inherit() const {
  PendingReturn copy;
  copy.slot = slot;
  copy.real_return = real_return;
  copy.function = function;
  copy.trampoline = trampoline;
  copy.chained = chained;
  copy.lifted = lifted;
  copy.walked = walked;
  copy.arguments = arguments;
  for (const auto& outstanding : probes)
    copy.probes.push_back(outstanding.Inherit());
  return copy;
}

const PendingReturn* ReturnStack::Find(uint64_t slot) const {
  auto found = std::find_if(frames_.rbegin(), frames_.rend(),
                            [slot](const PendingReturn& frame) { return frame.slot == slot; });
  return found == frames_.rend() ? nullptr : &*found;
}

std::vector<PendingReturn> ReturnStack::Take(uint64_t slot) {
  std::vector<PendingReturn> taken;
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].slot != slot) continue;
    taken.push_back(std::move(frames_[i]));
    frames_.erase(frames_.begin() + static_cast<ptrdiff_t>(i));
    if (!taken.back().chained) break;
  }
  return taken;
}

std::vector<PendingReturn> ReturnStack::Inherit(uint64_t slot) const {
  std::vector<PendingReturn> inherited;
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].slot != slot) continue;
    inherited.push_back(frames_[i].Inherit());
    if (!frames_[i].chained) break;
  }
  return inherited;
}

std::vector<PendingReturn> ReturnStack::DropAt(uint64_t slot) {
  size_t first = frames_.size() - std::min(frames_.size(), kMostDroppedAtOnce);
  return TakeFrom(first, [slot](const PendingReturn& frame) { return frame.slot == slot; });
}

const PendingReturn& ReturnStack::HijackerOf(const PendingReturn& frame) const {
  if (!frame.chained) return frame;
  auto found = std::find_if(frames_.rbegin(), frames_.rend(), [&](const PendingReturn& other) {
    return other.slot == frame.slot && !other.chained;
  });
  return found == frames_.rend() ? frame : *found;
}

std::vector<PendingReturn> ReturnStack::Reap(uint64_t sp, const StillHijacked& still_hijacked) {
  std::vector<PendingReturn> reaped;
  for (int i = 0; i < kMostReapedAtOnce && !frames_.empty(); ++i) {
    PendingReturn& innermost = frames_.back();
    if (innermost.slot >= sp) break;
    const PendingReturn& hijacker = HijackerOf(innermost);
    if (hijacker.lifted ? !hijacker.walked : still_hijacked(innermost)) break;
    reaped.push_back(std::move(innermost));
    frames_.pop_back();
  }
  return reaped;
}

void ReturnStack::BeginWalk(uint64_t sp) {
  walk_sp_ = std::max(walk_sp_, sp);
}

bool ReturnStack::EndWalk(uint64_t sp) {
  if (sp < walk_sp_) return false;
  walk_sp_ = 0;
  return true;
}

}  // namespace probed::probe
