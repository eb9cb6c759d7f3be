#pragma once
// Words that the kernel marks when this thread dies, by whatever cause: robust futexes without
// waiters (set_robust_list(2), Documentation/locking/robust-futex-ABI.rst). Their memory may be
// shared with other processes, which so learn of the death at once, and which are not trusted: what
// a node says is written, never read.

#include <linux/futex.h>

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace probed::sys {

// Begins an object in the list. `owner` & FUTEX_TID_MASK is the thread's id while it is in the list
// and the thread lives, else 0.
struct RobustNode {
  RobustNode* next = nullptr;
  uint32_t owner = 0;
};

// The list of one thread, in place of the C library's: that thread has no robust mutexes. All calls
// by that thread; nodes must be removed before their memory goes, and the list outlives the thread.
class RobustList {
 public:
  RobustList();
  RobustList(const RobustList&) = delete;
  RobustList& operator=(const RobustList&) = delete;

  // The kernel walks no more than this many.
  static constexpr uint32_t kMaxNodes = ROBUST_LIST_LIMIT;

  // Registers the list with the calling thread on first use. ROBUST_LIST_FULL.
  Status Add(RobustNode& node);
  void Remove(RobustNode& node);

 private:
  Status Register();

  // struct robust_list_head
  struct Head {
    RobustNode* first;
    long futex_offset;
    RobustNode* pending;
  } head_;
  bool registered_ = false;
  std::vector<RobustNode*> nodes_;  // as linked, from the last to the first
};

}  // namespace probed::sys
