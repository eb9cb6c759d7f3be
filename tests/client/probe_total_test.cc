#include "client/probe_total.h"

#include <gtest/gtest.h>

namespace probed::client {
namespace {

ProbeTotal Total(uint64_t hits, uint64_t recorded, uint64_t missed, uint64_t lost, uint64_t shown) {
  ProbeTotal total;
  total.probe.set_group("g");
  total.probe.set_event("e");
  auto& counters = *total.probe.mutable_counters();
  counters.set_hits(hits);
  counters.set_recorded(recorded);
  counters.set_missed(missed);
  counters.set_lost(lost);
  total.shown = shown;
  return total;
}

TEST(ProbeTotal, EveryHitIsAccountedFor) {
  EXPECT_EQ(DescribeTotal(Total(10, 10, 0, 0, 10), ""),
            "  p:g/e  hits 10  shown 10  missed 0  lost 0");
  EXPECT_EQ(DescribeTotal(Total(10, 8, 2, 3, 5), " in 7 (x)"),
            "  p:g/e in 7 (x)  hits 10  shown 5  missed 2  lost 3");
  EXPECT_EQ(DescribeTotal(Total(10, 10, 0, 1, 4), ""),
            "  p:g/e  hits 10  shown 4  missed 0  lost 1  not shown 5");
  EXPECT_EQ(DescribeTotal(Total(10, 10, 0, 6, 10), ""),
            "  p:g/e  hits 10  shown 10  missed 0  lost 0")
      << "another reader has lost some";
}

TEST(ProbeTotal, CallsLeftWithoutAReturnArePartOfTheMissed) {
  ProbeTotal total = Total(10, 7, 3, 0, 7);
  total.probe.mutable_counters()->set_unwound(2);
  EXPECT_EQ(DescribeTotal(total, ""), "  p:g/e  hits 10  shown 7  missed 3 (2 unwound)  lost 0");
  std::vector<ProbeTotal> totals{total};
  AddTo(totals, total);
  EXPECT_EQ(DescribeTotal(totals[0], ""),
            "  p:g/e  hits 20  shown 14  missed 6 (4 unwound)  lost 0");
}

TEST(ProbeTotal, OfADeletedProbeOnlyWhatWasShownIsKnown) {
  ProbeTotal total = Total(0, 0, 0, 0, 209);
  total.deleted = true;
  const std::string text = "  p:g/e  shown 209  (deleted meanwhile, with its counters)";
  EXPECT_EQ(DescribeTotal(total, ""), text);
  std::vector<ProbeTotal> totals{Total(10, 10, 0, 0, 10)};
  total.shown = 199;
  AddTo(totals, total);
  EXPECT_EQ(DescribeTotal(totals[0], ""), text) << "the hits of one are not all";
}

TEST(ProbeTotal, AddsUpWhatIsOfOneDefinition) {
  std::vector<ProbeTotal> totals;
  AddTo(totals, Total(10, 10, 0, 4, 6));
  AddTo(totals, Total(5, 4, 1, 0, 4));
  ProbeTotal other = Total(1, 1, 0, 0, 1);
  other.probe.set_event("f");
  AddTo(totals, other);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(DescribeTotal(totals[0], ""), "  p:g/e  hits 15  shown 10  missed 1  lost 4");
}

}  // namespace
}  // namespace probed::client
