#include "engine/kernel/place.h"

#include <gtest/gtest.h>

namespace probed::kernel {
namespace {

Facts SomeFacts() {
  Facts facts;
  facts.functions = ParseKallsyms(
      "1000 T plain\n"
      "1100 T quiet\n"
      "1200 T forbidden\n"
      "1300 t twice\n"
      "1400 t twice\n"
      "1500 t split.isra.0\n"
      "1600 t split.part.0\n"
      "2000 t plain\t[one]\n"
      "2100 t only_there\t[one]\n"
      "2200 t end\t[one]\n");
  facts.traceable = {"plain", "forbidden", "twice", "split.isra.0", "only_there"};
  facts.kprobes = Kprobes{};
  facts.kprobes->blacklist = {{0x1200, 0x1300, "forbidden"}};
  facts.has_kprobe_events = true;
  return facts;
}

std::string ObstacleAt(const std::string& location, const Facts& facts = SomeFacts()) {
  const auto place = ExplainPlace(facts, location);
  return place.ok() ? place->obstacle : place.error().reason;
}

TEST(KernelPlace, TellsWhatTheKernelWouldRefuse) {
  EXPECT_EQ(ObstacleAt("one:plain"), "");
  EXPECT_EQ(ObstacleAt("only_there+0x10"), "");
  EXPECT_EQ(ObstacleAt("0x1010"), "");
  EXPECT_TRUE(ObstacleAt("quiet").starts_with("notrace"));
  EXPECT_TRUE(ObstacleAt("forbidden+4").starts_with("on the kernel's blacklist"));
  EXPECT_TRUE(ObstacleAt("0x1204").starts_with("on the kernel's blacklist"));
  EXPECT_TRUE(ObstacleAt("twice").starts_with("ambiguous: 2 functions"));
  EXPECT_TRUE(ObstacleAt("plain").starts_with("ambiguous")) << "in a module, too";
  EXPECT_EQ(ObstacleAt("vmlinux:plain"), "");
  EXPECT_TRUE(ObstacleAt("only_there+0x100").starts_with("outside the function"));
  Facts without = SomeFacts();
  without.has_kprobe_events = false;
  EXPECT_TRUE(ObstacleAt("only_there", without).starts_with("this kernel has no kprobe events"));
}

TEST(KernelPlace, SuggestsOtherNames) {
  const auto split = ExplainPlace(SomeFacts(), "split");
  ASSERT_FALSE(split.ok());
  EXPECT_EQ(split.error().reason, "KERNEL_SYMBOL_NOT_FOUND");
  EXPECT_EQ(split.error().metadata.at("suggestions"), "split.isra.0,split.part.0");
  const auto misspelled = ExplainPlace(SomeFacts(), "forbiden");
  ASSERT_FALSE(misspelled.ok());
  EXPECT_EQ(misspelled.error().metadata.at("suggestions"), "forbidden");
}

TEST(KernelPlace, RefusesWhatIsNoPlace) {
  for (const char* location : {"", "0x", "12zz", "0x10", "plain+", "plain+x", "one:", "one:+1"})
    EXPECT_EQ(ObstacleAt(location), "KERNEL_PLACE_INVALID") << location;
}

TEST(KernelFacts, OfThisMachineHoldFunctions) {
  const auto facts = ReadFacts();
  ASSERT_TRUE(facts.ok()) << facts.error().ToString();
  EXPECT_GT(facts->functions.size(), 10'000u);
}

}  // namespace
}  // namespace probed::kernel
