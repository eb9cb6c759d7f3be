#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "elf/file.h"
#include "elf/go_functions.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

class Go : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access(Fixture("go").c_str(), R_OK) != 0) GTEST_SKIP() << "no Go toolchain";
    whole_ = *File::Open(Fixture("go"));
    stripped_ = *File::Open(Fixture("go_stripped"));
  }

  std::shared_ptr<const File> whole_, stripped_;
};

TEST_F(Go, IsKnownByItsMarks) {
  EXPECT_TRUE(whole_->is_go());
  EXPECT_TRUE(stripped_->is_go());
  for (const std::string& path : SystemFiles())
    EXPECT_FALSE((*File::Open(path))->is_go()) << path;
}

TEST_F(Go, AssemblyTakesItsArgumentsFromTheStack) {
  size_t by_stack = 0;
  for (const Symbol& symbol : whole_->functions()) {
    if (!symbol.name.ends_with(".abi0")) continue;
    by_stack += !PassesInGoRegisters(*whole_, symbol.address);
  }
  EXPECT_GT(by_stack, 10u);
  EXPECT_TRUE(PassesInGoRegisters(*whole_, whole_->FindFunction("main.main")->address));
}

TEST_F(Go, FunctionsAreThoseThatItsOwnToolLists) {
  size_t compared = 0;
  for (const std::string& line : RunLines("go tool nm -size " + Fixture("go"))) {
    std::istringstream fields(line);
    std::string address, size, type, name;
    fields >> address >> size >> type >> name;
    if (type != "T" || !name.starts_with("main.")) continue;
    auto symbol = whole_->FindFunction(name);
    ASSERT_TRUE(symbol.ok()) << symbol.error().ToString();
    EXPECT_EQ(symbol->address.value, std::stoull(address, nullptr, 16));
    EXPECT_EQ(symbol->size, std::stoull(size));
    ++compared;
  }
  EXPECT_GE(compared, 2u);
}

// The runtime's reaches to the next function, padding included.
TEST_F(Go, BothTablesOfOneFileTellSizes) {
  size_t compared = 0;
  for (const std::string& line : RunLines("go tool nm -size " + Fixture("go"))) {
    std::istringstream fields(line);
    std::string address, size, type, name;
    fields >> address >> size >> type >> name;
    if (type != "T" || !name.starts_with("main.")) continue;
    const LinkAddr start{std::stoull(address, nullptr, 16)};
    const auto claims = whole_->SizesAt(start);
    ASSERT_EQ(claims.size(), 2u) << name;
    EXPECT_EQ(claims[0], (SizeClaim{".symtab", std::stoull(size)}));
    EXPECT_EQ(claims[1].table, ".gopclntab");
    EXPECT_GE(claims[1].size, claims[0].size);
    EXPECT_LT(claims[1].size, claims[0].size + 64);
    ++compared;
  }
  EXPECT_GE(compared, 2u);
}

// -s leaves code and addresses as they are, so the whole program's symbols are the truth. They tell
// the two calling conventions of one function apart (write, write.abi0); the table does not.
TEST_F(Go, FunctionsOfAStrippedProgramComeFromTheRuntimeTable) {
  size_t compared = 0;
  for (const Symbol& symbol : stripped_->functions()) {
    EXPECT_EQ(symbol.source, SymbolSource::kGoTable);
    for (const Symbol& same : whole_->AliasesAt(symbol.address)) {
      if (!same.name.starts_with(symbol.name)) continue;
      EXPECT_GE(symbol.size, same.size) << symbol.name;
      EXPECT_LT(symbol.size, same.size + 64) << symbol.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000u);
  EXPECT_GT(compared * 100, stripped_->functions().size() * 95);
  EXPECT_TRUE(stripped_->FindFunction("main.work").ok());
}

}  // namespace
}  // namespace probed::elf
