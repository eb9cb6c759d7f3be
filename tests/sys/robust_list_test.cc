#include "engine/sys/robust_list.h"
#include "tests/support/fork.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

namespace probed::sys {
namespace {

struct Shared {
  std::array<RobustNode, 3> nodes;
  uint32_t ready = 0;
};

Shared* MapShared() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (page) Shared;
}

uint32_t Owner(const RobustNode& node) {
  return std::atomic_ref(const_cast<uint32_t&>(node.owner)).load() & FUTEX_TID_MASK;
}

// A child that keeps two of three nodes, until it is killed.
pid_t StartOwner(Shared& shared) {
  pid_t child = ForkOrDie();
  if (child != 0) return child;
  RobustList list;
  for (RobustNode& node : shared.nodes) {
    if (!list.Add(node).ok()) ::_exit(1);
  }
  list.Remove(shared.nodes[1]);
  std::atomic_ref(shared.ready).store(1);
  std::atomic_ref(shared.ready).notify_all();
  while (true)
    ::pause();
}

TEST(RobustList, AKilledOwnerIsGoneFromItsWords) {
  Shared* shared = MapShared();
  pid_t child = StartOwner(*shared);
  ASSERT_GT(child, 0);
  // Another process changes it, so no futex wait of ours is woken: look until it is there.
  while (std::atomic_ref(shared->ready).load() == 0 && ::waitpid(child, nullptr, WNOHANG) == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Owner(shared->nodes[0]), static_cast<uint32_t>(child));
  EXPECT_EQ(Owner(shared->nodes[1]), 0u);
  EXPECT_EQ(Owner(shared->nodes[2]), static_cast<uint32_t>(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const RobustNode& node : shared->nodes)
    EXPECT_EQ(Owner(node), 0u);
  ::munmap(shared, 4096);
}

TEST(RobustList, AThreadThatEndsIsGoneToo) {
  Shared* shared = MapShared();
  RobustList list;
  std::thread([&] {
    EXPECT_TRUE(list.Add(shared->nodes[0]).ok());
    EXPECT_EQ(Owner(shared->nodes[0]), static_cast<uint32_t>(::gettid()));
  }).join();
  EXPECT_EQ(Owner(shared->nodes[0]), 0u);
  ::munmap(shared, 4096);
}

// The nodes stand in memory that others write.
TEST(RobustList, RemovingReadsNothingThatOthersMayHaveChanged) {
  std::array<RobustNode, 3> nodes;
  RobustList list;
  std::thread([&] {
    for (RobustNode& node : nodes)
      ASSERT_TRUE(list.Add(node).ok());
    for (RobustNode& node : nodes)
      node.next = reinterpret_cast<RobustNode*>(8);
    for (RobustNode* node : {&nodes[1], &nodes[2], &nodes[0]})
      list.Remove(*node);
    EXPECT_TRUE(list.Add(nodes[1]).ok());
  }).join();
  for (const RobustNode& node : nodes)
    EXPECT_EQ(Owner(node), 0u);
}

TEST(RobustList, IsFullWhereTheKernelStopsLooking) {
  std::vector<RobustNode> nodes(RobustList::kMaxNodes + 1);
  RobustList list;
  std::thread([&] {
    for (uint32_t i = 0; i < RobustList::kMaxNodes; ++i)
      ASSERT_TRUE(list.Add(nodes[i]).ok());
    Status full = list.Add(nodes.back());
    ASSERT_FALSE(full.ok());
    EXPECT_EQ(full.error().reason, "ROBUST_LIST_FULL");
  }).join();
  for (const RobustNode& node : nodes)
    EXPECT_EQ(Owner(node), 0u);
}

}  // namespace
}  // namespace probed::sys
