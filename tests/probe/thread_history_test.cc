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
  history.Rename(11, {"new"});
  EXPECT_STREQ(history.Find(kBase, 150)->comm.data(), "new");
}

}  // namespace
}  // namespace probed::probe
