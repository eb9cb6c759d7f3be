#include "engine/sys/robust_list.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <utility>

namespace probed::sys {
namespace {

// The thread may be killed between any two stores, so the kernel must find them in this order.
void StoreInOrder() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

// An empty list points at its own head, which begins like a node.
RobustList::RobustList()
    : head_{.first = reinterpret_cast<RobustNode*>(&head_),
            .futex_offset = offsetof(RobustNode, owner),
            .pending = nullptr} {}

Status RobustList::Register() {
  if (std::exchange(registered_, true)) return {};
  if (::syscall(SYS_set_robust_list, &head_, sizeof head_) == 0) return {};
  registered_ = false;
  return ErrnoError(errno, "set_robust_list");
}

Status RobustList::Add(RobustNode& node) {
  PROBED_RETURN_IF_ERROR(Register());
  if (nodes_.size() == kMaxNodes) {
    return Error{.code = ErrorCode::kResourceExhausted,
                 .reason = "ROBUST_LIST_FULL",
                 .message = "the kernel can watch no more processes for one thread",
                 .hint = "",
                 .metadata = {}};
  }
  // What is pending is marked as well, so there is no moment in which a death is missed.
  head_.pending = &node;
  StoreInOrder();
  std::atomic_ref(node.owner).store(static_cast<uint32_t>(::gettid()), std::memory_order_release);
  node.next = nodes_.empty() ? reinterpret_cast<RobustNode*>(&head_) : nodes_.back();
  StoreInOrder();
  head_.first = &node;
  StoreInOrder();
  head_.pending = nullptr;
  nodes_.push_back(&node);
  return {};
}

void RobustList::Remove(RobustNode& node) {
  std::atomic_ref(node.owner).store(0, std::memory_order_release);
  auto found = std::find(nodes_.begin(), nodes_.end(), &node);
  if (found == nodes_.end()) return;
  RobustNode* next =
      found == nodes_.begin() ? reinterpret_cast<RobustNode*>(&head_) : *std::prev(found);
  bool is_first = std::next(found) == nodes_.end();
  RobustNode*& link = is_first ? head_.first : (*std::next(found))->next;
  link = next;
  nodes_.erase(found);
}

}  // namespace probed::sys
