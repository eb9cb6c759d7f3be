#pragma once
// Which fs base has which shadow stack (engine/ring/layout.h), and what stands in the stacks. The
// program may write anything into those at any time: a frame is copied once and judged by whoever
// gets it. Tracer thread only.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "engine/ring/layout.h"

namespace probed::probe {

class ShadowTable {
 public:
  struct Stack {
    pid_t owner = 0;
    uint64_t base = 0;
  };

  // The spans are at least as large as the geometry says and outlive this.
  ShadowTable(ring::Geometry geometry, std::span<std::byte> control, std::span<std::byte> ring)
      : geometry_(geometry), control_(control), ring_(ring) {}

  // From now on threads with this fs base find a stack. False: there is no room, or the base is
  // listed or barred.
  bool Add(uint64_t base, pid_t owner);
  // They find it no more; what it holds is still there.
  void Unlist(uint64_t base);
  // Its stack, if it is listed.
  std::optional<uint32_t> Find(uint64_t base) const;
  // All that are in use, unlisted ones included, by number.
  const std::map<uint32_t, Stack>& stacks() const { return stacks_; }
  // Of a stack whose frames nobody needs. What a thread that has changed its base pushes there in
  // the same moment can be found for some time to come.
  void Free(uint32_t stack);
  uint32_t touched() const { return untouched_; }

  // Several tasks run with this base at once, one of them `because`: none of them may have a stack
  // as long as that lives.
  void Bar(uint64_t base, pid_t because);
  void Unbar(pid_t because);
  bool IsBarred(uint64_t base) const { return barred_.contains(base); }

  // Outermost first; gaps included.
  std::vector<ring::ShadowFrame> Frames(uint32_t stack) const;
  // Its thread is stopped outside of detours and trampolines, or gone.
  void Clear(uint32_t stack);
  // Makes a gap of a frame, if it is the one with this slot still. Its thread may run.
  bool Take(uint32_t stack, size_t index, uint64_t slot);
  // Frames, by the index of their probe.
  std::map<uint32_t, uint64_t> CountPending() const;

 private:
  ring::ThreadEntry& EntryAt(uint32_t place) const;
  ring::ShadowStack& StackAt(uint32_t stack) const;
  std::optional<uint32_t> TakeStack();
  std::optional<uint32_t> PlaceFor(uint64_t base) const;

  const ring::Geometry geometry_;
  const std::span<std::byte> control_;
  const std::span<std::byte> ring_;
  std::map<uint64_t, uint32_t> listed_;  // by base
  std::map<uint32_t, Stack> stacks_;
  // Used again as late as can be.
  std::deque<uint32_t> free_;
  uint32_t untouched_ = 0;  // stacks from here on were never used
  uint32_t occupied_ = 0;   // entries of the table where no search ends
  std::map<uint64_t, std::set<pid_t>> barred_;
};

}  // namespace probed::probe
