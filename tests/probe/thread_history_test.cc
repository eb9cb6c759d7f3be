#include "engine/probe/thread_history.h"

#include <gtest/gtest.h>

namespace probed::probe {
namespace {

constexpr uint64_t kBase = 0x7f0000001000;

pid_t TidAt(const ThreadHistory& history, uint64_t tsc) {
  auto identity = history.Find(kBase, tsc);
  return identity ? identity->tid : 0;
}

TEST(ThreadHistory, ABlockThatIsUsedAgainIsTheNextThreads) {
  ThreadHistory history;
  history.Begin(kBase, 11, 100);
  history.Begin(kBase, 12, 200);
  history.End(11, 210);  // told late
  EXPECT_EQ(TidAt(history, 99), 0);
  EXPECT_EQ(TidAt(history, 100), 11);
  EXPECT_EQ(TidAt(history, 199), 11);
  EXPECT_EQ(TidAt(history, 200), 12);
  EXPECT_EQ(TidAt(history, 205), 12);
  EXPECT_EQ(history.Owner(kBase), 12);
}

TEST(ThreadHistory, ABorrowedBaseGoesBack) {
  ThreadHistory history;
  history.Begin(kBase, 11, 100);
  history.Borrow(kBase, 21, 200);
  EXPECT_EQ(history.Owner(kBase), 21);
  history.End(21, 300);
  EXPECT_EQ(TidAt(history, 250), 21);
  EXPECT_EQ(TidAt(history, 300), 11);
  EXPECT_EQ(history.Owner(kBase), 11);
}

TEST(ThreadHistory, NobodyIsFoundAfterTheEnd) {
  ThreadHistory history;
  history.Begin(kBase, 11, 100);
  history.End(11, 200);
  EXPECT_EQ(TidAt(history, 199), 11);
  EXPECT_EQ(TidAt(history, 200), 0);
  EXPECT_FALSE(history.Owner(kBase));
  history.Prune(300);
  EXPECT_EQ(TidAt(history, 150), 0);
}

TEST(ThreadHistory, NamesAreToldLater) {
  ThreadHistory history;
  history.Begin(kBase, 11, 100);
  EXPECT_STREQ(history.Find(kBase, 150)->comm.data(), "");
  history.Rename(kBase, 150, {"new"});
  EXPECT_STREQ(history.Find(kBase, 150)->comm.data(), "new");
}

TEST(ThreadHistory, WhatIsReadToTheEndIsForgotten) {
  ThreadHistory history;
  history.Begin(kBase + 1, 10, 1);  // goes on living
  for (int i = 0; i < 1000; ++i) {
    uint64_t begin = 100 + 10 * static_cast<uint64_t>(i);
    history.Begin(kBase, 1000 + i, begin);
    history.End(1000 + i, begin + 5);
  }
  EXPECT_EQ(history.ended(), 1000u);
  history.Prune(100 + 10 * 990);
  EXPECT_EQ(history.ended(), 10u);
  EXPECT_EQ(TidAt(history, 100 + 10 * 989), 0);
  EXPECT_EQ(TidAt(history, 100 + 10 * 990), 1990);
  EXPECT_EQ(TidAt(history, 100 + 10 * 999), 1999);
  EXPECT_EQ(history.Owner(kBase + 1), 10);
}

// A thread that is frozen in the middle of a record keeps others from being read.
TEST(ThreadHistory, OfTooManyTheLatestAreRemembered) {
  ThreadHistory history;
  history.Begin(kBase + 1, 10, 1);
  const int threads = static_cast<int>(ThreadHistory::kMaxEnded) + 500;
  for (int i = 0; i < threads; ++i) {
    uint64_t begin = 100 + 10 * static_cast<uint64_t>(i);
    history.Begin(kBase, 1000 + i, begin);
    history.End(1000 + i, begin + 5);
  }
  EXPECT_EQ(history.ended(), ThreadHistory::kMaxEnded);
  EXPECT_EQ(TidAt(history, 100 + 10 * 499), 0);
  EXPECT_EQ(TidAt(history, 100 + 10 * 500), 1500);
  EXPECT_EQ(history.Owner(kBase + 1), 10);
}

TEST(ThreadHistory, AThreadMayTakeEverNewBases) {
  ThreadHistory history;
  for (uint64_t i = 0; i < 100'000; ++i)
    history.Begin(kBase + i, 11, 100 + i);
  history.Prune(~uint64_t{0});
  EXPECT_EQ(history.Owner(kBase + 99'999), 11);
  EXPECT_FALSE(history.Owner(kBase));
  history.End(11, 200'000);
  EXPECT_FALSE(history.Owner(kBase + 99'999));
}

}  // namespace
}  // namespace probed::probe
