// What the corpus cannot show: state over many lines, enabling, removal by id.

#include <gtest/gtest.h>

#include <cerrno>

#include "engine/lang/refusal.h"
#include "tests/lang/recorded.h"

namespace probed::lang::testing {
namespace {

class DefinitionSetTest : public ::testing::Test {
 protected:
  DefinitionSet::Applied Apply(const std::string& line) { return set_.Apply(line, files_); }
  DefinitionId Define(const std::string& line) { return Apply(line).added.value(); }

  FakeFiles files_ = OneFile();
  DefinitionSet set_{Dialect::kKernel};
};

TEST_F(DefinitionSetTest, KeepsWhatWasAccepted) {
  const DefinitionId id = Define("p:g/a /bin/y:0x20(8)");
  const Definition& definition = *set_.Find(id);
  EXPECT_EQ(definition.group, "g");
  EXPECT_EQ(definition.event, "a");
  EXPECT_EQ(definition.path, "/bin/y");
  EXPECT_EQ(definition.offset, 0x20u);
  EXPECT_EQ(definition.ref_ctr_offset, 8u);
  EXPECT_EQ(definition.inode, 2u);
  EXPECT_EQ(definition.readback, "p:g/a /bin/y:0x0000000000000020(0x8)");
  EXPECT_EQ(set_.Find(id + 1), nullptr);
}

TEST_F(DefinitionSetTest, IdsAreNeverReused) {
  const DefinitionId first = Define("p:g/a /bin/x:1");
  EXPECT_TRUE(set_.Remove(first));
  EXPECT_FALSE(set_.Remove(first));
  EXPECT_GT(Define("p:g/a /bin/x:1"), first);
}

TEST_F(DefinitionSetTest, RemovalFreesNameAndPlace) {
  const DefinitionId id = Define("p:g/a /bin/x:1(2) %di");
  EXPECT_EQ(Apply("r:g/a /bin/x:1(4)").verdict.code, "REFCTR_CONFLICT");
  EXPECT_EQ(Apply("r:g/a /bin/x:1(2)").verdict.code, "DIFF_PROBE_TYPE");
  set_.Remove(id);
  EXPECT_TRUE(Apply("r:g/a /bin/x:1(4)").verdict.ok);
}

TEST_F(DefinitionSetTest, EnabledEventsAreBusy) {
  const DefinitionId a = Define("p:g/a /bin/x:1");
  Define("p:g/b /bin/x:1");
  Define("p:g/c /bin/x:1");
  set_.SetEventEnabled("g", "b", true);
  const auto refused = Apply("-:g/");
  EXPECT_EQ(refused.verdict.error_number, EBUSY);
  EXPECT_EQ(refused.verdict.code, "EVENT_BUSY");
  EXPECT_EQ(refused.removed, std::vector<DefinitionId>{a});  // those before it are gone
  EXPECT_EQ(set_.ids().size(), 2u);
  set_.SetEventEnabled("g", "b", false);
  EXPECT_EQ(Apply("-:g/").removed.size(), 2u);
}

TEST_F(DefinitionSetTest, ARemovedEventIsNotEnabledWhenItComesBack) {
  const DefinitionId id = Define("p:g/a /bin/x:1");
  set_.SetEventEnabled("g", "a", true);
  set_.Remove(id);
  Define("p:g/a /bin/x:1");
  EXPECT_TRUE(Apply("-:g/a").verdict.ok);
}

// 6.18 compares in full, where older kernels cut at 63 bytes.
TEST_F(DefinitionSetTest, DeletionComparesLongArgumentsInFull) {
  const std::string argument = std::string(32, 'n') + "=+" + std::string(50, '0') + "(%di)";
  Define("p:g/a /bin/x:1 " + argument);
  const std::string head = "-:g/a /bin/x:0x0000000000000001 ";
  EXPECT_EQ(Apply(head + argument.substr(0, 63)).verdict.error_number, ENOENT);
  EXPECT_TRUE(Apply(head + argument).verdict.ok);
}

TEST_F(DefinitionSetTest, RefusesBytesThatNoLineHas) {
  EXPECT_EQ(Apply(std::string("p:g/a /bin/x:1\0", 15)).verdict.code, "BAD_LINE");
  EXPECT_EQ(Apply("p:g/a /bin/x:1\n").verdict.code, "BAD_LINE");
  EXPECT_EQ(Apply("p:g/a /bin/x:1" + std::string(4096, ' ')).verdict.code, "BAD_LINE");
}

TEST_F(DefinitionSetTest, AnEmptyPathIsTheWorkingDirectory) {
  EXPECT_EQ(Apply("p:g/a :16/c").verdict.code, "NO_REGULAR_FILE");
}

TEST_F(DefinitionSetTest, TenThousandDefinitionsStayFast) {
  for (int i = 0; i < 10000; ++i) {
    ASSERT_TRUE(Apply("p:g/e" + std::to_string(i % 5000) + " /bin/x:" + std::to_string(i)).added);
  }
  EXPECT_EQ(Apply("-:g/").removed.size(), 10000u);
}

TEST_F(DefinitionSetTest, EveryRefusalExplainsItself) {
  for (int code = 0; code < static_cast<int>(RefusalCode::kOwnWords); ++code) {
    const RefusalText& text = TextOf(static_cast<RefusalCode>(code));
    EXPECT_FALSE(text.name.empty()) << code;
    EXPECT_TRUE(text.explanation.ends_with('.')) << text.name;
  }
}

}  // namespace
}  // namespace probed::lang::testing
