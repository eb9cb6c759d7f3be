#pragma once
// The hijacked return addresses of one thread. A frame is found by the address of the stack slot
// that held its return address, never by its place in the list, so longjmp, exceptions, signal
// stacks and coroutines cannot pair a return with the wrong call. Pure; tracer thread only.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "engine/probe/patch_journal.h"
#include "engine/probe/probe.h"

namespace probed::probe {

// One probe's share of an outstanding return. Counts as outstanding while it lives; destroyed
// without Finish() it counts as missed.
class OutstandingReturn {
 public:
  explicit OutstandingReturn(std::shared_ptr<Probe> probe) : probe_(std::move(probe)) {
    ++probe_->outstanding;
  }
  OutstandingReturn(OutstandingReturn&&) noexcept = default;
  OutstandingReturn& operator=(OutstandingReturn&& other) noexcept {
    std::swap(probe_, other.probe_);
    std::swap(inherited_, other.inherited_);
    return *this;
  }
  ~OutstandingReturn();

  // For a fork child, which returns from calls that its parent made: nothing is missed if it does
  // not, because the entry was counted once. If it does, that is recorded once more.
  OutstandingReturn Inherit() const;
  // The call has been left without a return, and is still missed when this is destroyed. False:
  // inherited, so its end is not counted.
  bool Unwind();
  // The call has returned; the probe is the caller's to evaluate.
  std::shared_ptr<Probe> Finish();
  const Probe& probe() const { return *probe_; }

 private:
  std::shared_ptr<Probe> probe_;
  bool inherited_ = false;
};

struct PendingReturn {
  uint64_t slot = 0;  // address of the stack word that held `real_return`
  uint64_t real_return = 0;
  uint64_t function = 0;  // address of the return probe that was hit
  // What the slot holds instead: the daemon's trampoline, or one of a detour that had hijacked it.
  uint64_t trampoline = 0;
  bool chained = false;             // the slot was hijacked already: a tail call of the frame below
  bool lifted = false;              // the real address is back in place for an unwinder
  bool walked = false;              // that has begun below the slot
  std::vector<uint64_t> arguments;  // $arg1... at entry
  std::vector<OutstandingReturn> probes;  // newest first
  ReturnRecord record;                    // of who hijacked the slot

  // For somebody who returns from the same call a second time: OutstandingReturn::Inherit().
  PendingReturn Inherit() const;
};

class ReturnStack {
 public:
  // Tells whether a frame's slot still holds its trampoline's address.
  using StillHijacked = std::function<bool(const PendingReturn&)>;

  bool empty() const { return frames_.empty(); }
  size_t size() const { return frames_.size(); }
  const std::vector<PendingReturn>& frames() const { return frames_; }
  std::vector<PendingReturn>& frames() { return frames_; }

  void Push(PendingReturn frame) { frames_.push_back(std::move(frame)); }
  // As the outermost: of another thread.
  void Adopt(PendingReturn frame) { frames_.insert(frames_.begin(), std::move(frame)); }
  // The innermost frame that uses `slot`, or null.
  const PendingReturn* Find(uint64_t slot) const;
  // The frame whose slot it is: of a tail call, that of the function it was made in.
  const PendingReturn& HijackerOf(const PendingReturn& frame) const;
  // Removes and returns the frames that return through `slot` now, innermost first: one, or a chain
  // of tail calls. Empty when the slot is unknown.
  std::vector<PendingReturn> Take(uint64_t slot);
  // The same frames, inherited; this stack keeps its own.
  std::vector<PendingReturn> Inherit(uint64_t slot) const;
  // A fresh return address was found in `slot`: whatever waited there is dead, and taken off.
  std::vector<PendingReturn> DropAt(uint64_t slot);
  // Takes off frames below `sp` that can never return: their slot was overwritten since, or an
  // unwinder has gone past them. Looks at the innermost few only, so that a deep stack costs
  // nothing.
  std::vector<PendingReturn> Reap(uint64_t sp, const StillHijacked& still_hijacked);
  // Takes off the frames for which `test` holds.
  template <typename Test>
  std::vector<PendingReturn> TakeIf(Test test) {
    return TakeFrom(0, std::move(test));
  }
  void Clear() { frames_.clear(); }

  // A walk over the stack begins in a function entered with `sp`. Walks nest: what one calls, a
  // signal handler included, may walk too; frames stay lifted until the outermost is over.
  void BeginWalk(uint64_t sp);
  // Whether no walk goes on in the function that has `sp`, nor in its callers.
  bool EndWalk(uint64_t sp);

 private:
  template <typename Test>
  std::vector<PendingReturn> TakeFrom(size_t first, Test test) {
    auto taken =
        std::stable_partition(frames_.begin() + static_cast<ptrdiff_t>(first), frames_.end(),
                              [&](PendingReturn& frame) { return !test(frame); });
    std::vector<PendingReturn> frames(std::make_move_iterator(taken),
                                      std::make_move_iterator(frames_.end()));
    frames_.erase(taken, frames_.end());
    return frames;
  }

  std::vector<PendingReturn> frames_;
  uint64_t walk_sp_ = 0;  // of the outermost walk; 0: none
};

}  // namespace probed::probe
