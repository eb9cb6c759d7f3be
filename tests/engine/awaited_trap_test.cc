// A program waits for SIGTRAP while other threads of its, which block it too, run into breakpoints:
// each of these lets the signal in, as far as the kernel is concerned.

#include <fmt/format.h>
#include <sys/mman.h>

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/unique_fd.h"
#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

// As a daemon's: with a handler of ours in the place of the default action.
EngineOptions WithJournal(int journal) {
  EngineOptions options;
  options.optimization.enabled = false;
  options.patch_journal = journal;
  return options;
}

using Way = std::tuple<const char*, const char*>;

class AwaitedTrapTest : public EngineTest, public testing::WithParamInterface<Way> {
 protected:
  AwaitedTrapTest() : AwaitedTrapTest(UniqueFd(::memfd_create("journal", MFD_CLOEXEC))) {}
  explicit AwaitedTrapTest(UniqueFd journal)
      : EngineTest(WithJournal(journal.get())), journal_(std::move(journal)) {}

 private:
  UniqueFd journal_;
};

TEST_P(AwaitedTrapTest, ComesToWhoWaits) {
  const auto [how, when] = GetParam();
  Puppet puppet("awaits", {how, when});
  TargetId target = Attach(puppet);
  const ProbeId probe = Define(target, fmt::format("p:t/work {}:work", puppet.path()));
  ASSERT_EQ(puppet.Ask("go"), "running");
  // One that waits in a thread swallows the trap of a breakpoint (kernel/signal.c, legacy_queue).
  ASSERT_EQ(puppet.Ask("raise 20"), "20 came");
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(puppet.Ask("20"), "20 came");
  EXPECT_GT(Counters(probe).hits, 100u);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(puppet.Ask("20"), "20 came");
  EXPECT_EQ(puppet.Ask("raise 20"), "20 came");
  const std::string end = puppet.Ask("end");
  // What came to be blocked out of our sight is put back in the thread that is sent the signal.
  if (std::string_view(when) == "first") {
    EXPECT_EQ(end, "3 blocking");
  }
  EXPECT_EQ(puppet.Wait(), 0);
}

std::string NameOf(const testing::TestParamInfo<Way>& way) {
  return fmt::format("{}_{}", std::get<0>(way.param), std::get<1>(way.param));
}

INSTANTIATE_TEST_SUITE_P(, AwaitedTrapTest,
                         testing::Values(Way{"sigwait", "first"}, Way{"sigwait", "later"},
                                         Way{"signalfd", "first"}, Way{"signalfd", "later"},
                                         Way{"own", "first"}),
                         NameOf);

}  // namespace
}  // namespace probed::engine
