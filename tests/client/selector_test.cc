#include <gtest/gtest.h>

#include "client/verbs/find_target.h"

namespace probed::client {
namespace {

v1::Probe Probe() {
  v1::Probe probe;
  probe.set_name("targets/1-2/probes/3");
  probe.set_group("g");
  probe.set_event("a");
  probe.set_definition("p:g/a /bin/x:0x0000000000001149 x=%di y=%si");
  return probe;
}

TEST(Selects, ByEveryName) {
  for (const char* selector : {"targets/1-2/probes/3", "a", "g/a", "g/", "-:a", "-:g/a", "-:g/"}) {
    EXPECT_TRUE(Selects(selector, Probe())) << selector;
  }
  for (const char* selector : {"targets/1-2/probes/4", "b", "h/a", "g/b", "h/", "g.a", "-:b", ""}) {
    EXPECT_FALSE(Selects(selector, Probe())) << selector;
  }
}

TEST(Selects, PlaceAndArgumentsMatchAsText) {
  EXPECT_TRUE(Selects("-:g/a /bin/x:0x0000000000001149", Probe()));
  EXPECT_TRUE(Selects("-:g/a /bin/x:0x0000000000001149 x=%di", Probe()));
  EXPECT_TRUE(Selects("-:g/a /bin/x:0x0000000000001149 x=%di y=%si", Probe()));
  EXPECT_FALSE(Selects("-:g/a /bin/x:0x1149", Probe()));
  EXPECT_FALSE(Selects("-:g/a /bin/x:0x0000000000001149 %di", Probe()));
  EXPECT_FALSE(Selects("-:g/a /bin/x:0x0000000000001149 y=%si", Probe()));
  EXPECT_FALSE(Selects("-:g/a /bin/x:0x000000000000114", Probe()));
}

}  // namespace
}  // namespace probed::client
