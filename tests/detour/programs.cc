#include "tests/detour/programs.h"

#include <gtest/gtest.h>

#include "engine/lang/definition_set.h"
#include "tests/lang/fake_files.h"

namespace probed::detour::testing {

std::shared_ptr<const lang::Definition> Define(const std::string& arguments, lang::Dialect dialect,
                                               lang::ProbeKind kind) {
  lang::testing::FakeFiles files;
  files.AddFile("/bin/x", 1);
  lang::DefinitionSet set(dialect);
  const auto applied = set.Apply(
      (kind == lang::ProbeKind::kEntry ? "p" : "r") + (":g/e /bin/x:0x10 " + arguments), files);
  EXPECT_TRUE(applied.verdict.ok) << arguments << ": " << applied.verdict.explanation;
  return applied.verdict.ok ? set.Find(set.ids().front()) : nullptr;
}

}  // namespace probed::detour::testing
