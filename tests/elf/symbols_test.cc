#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "elf/file.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

using Row = std::tuple<std::string, std::string, bool, uint64_t, uint64_t, bool>;

Row RowOf(const Symbol& symbol) {
  return {symbol.name,          symbol.version, symbol.version.empty() || symbol.default_version,
          symbol.address.value, symbol.size,    symbol.ifunc};
}

Row RowOf(const OracleSymbol& symbol) {
  return {symbol.name,    symbol.version, symbol.default_version,
          symbol.address, symbol.size,    symbol.type == "IFUNC"};
}

bool IsFunction(const OracleSymbol& symbol) {
  return symbol.type == "FUNC" || symbol.type == "IFUNC";
}

std::set<Row> OracleFunctions(const std::string& path, const std::string& table) {
  std::set<Row> rows;
  for (const OracleSymbol& symbol : ReadelfSymbols(path, table)) {
    if (symbol.defined && IsFunction(symbol)) rows.insert(RowOf(symbol));
  }
  return rows;
}

std::set<Row> OurFunctions(const File& file, SymbolSource source) {
  std::set<Row> rows;
  for (const Symbol& symbol : file.functions()) {
    if (symbol.source == source) rows.insert(RowOf(symbol));
  }
  return rows;
}

TEST(Symbols, DynamicFunctionsAreThoseThatReadelfLists) {
  size_t compared = 0;
  for (const std::string& path : SystemFiles()) {
    auto file = File::Open(path);
    ASSERT_TRUE(file.ok()) << file.error().ToString();
    std::set<Row> theirs = OracleFunctions(path, "--dyn-syms");
    EXPECT_EQ(OurFunctions(**file, SymbolSource::kDynsym), theirs) << path;
    compared += theirs.size();
  }
  EXPECT_GT(compared, 10000u);
}

TEST(Symbols, ImportsAreThoseThatReadelfLists) {
  for (const std::string& path : SystemFiles()) {
    auto file = File::Open(path);
    ASSERT_TRUE(file.ok());
    std::set<std::string> ours, theirs;
    for (const Symbol& symbol : (*file)->imports())
      ours.insert(symbol.name + "@" + symbol.version);
    for (const OracleSymbol& symbol : ReadelfSymbols(path, "--dyn-syms")) {
      if (symbol.defined || symbol.name.empty() || symbol.type == "TLS") continue;
      theirs.insert(symbol.name + "@" + symbol.version);
    }
    EXPECT_EQ(ours, theirs) << path;
  }
}

TEST(Symbols, StaticTablesOfEveryLayoutAreThoseThatReadelfLists) {
  std::vector<std::string> names = {"pie", "no_pie", "static", "static_pie", "no_separate_code",
                                    "lld", "gold",   "mold"};
  std::transform(names.begin(), names.end(), names.begin(), Fixture);
  for (const std::string& path : Present(names)) {
    auto file = File::Open(path);
    ASSERT_TRUE(file.ok()) << file.error().ToString();
    std::set<std::pair<std::string, uint64_t>> ours, theirs;
    for (const Symbol& symbol : (*file)->functions()) {
      ours.emplace(symbol.name, symbol.address.value);
    }
    for (const OracleSymbol& symbol : ReadelfSymbols(path, "--syms --dyn-syms")) {
      if (symbol.defined && IsFunction(symbol)) theirs.emplace(symbol.name, symbol.address);
    }
    EXPECT_EQ(ours, theirs) << path;
  }
}

TEST(Symbols, AreTheSameWithoutSectionHeadersWhenTheyAreDynamic) {
  std::string copy = ::testing::TempDir() + "elf_without_sections";
  // e_shoff, then e_shentsize, e_shnum and e_shstrndx (gABI, "ELF Header").
  RunLines("cp /usr/lib/x86_64-linux-gnu/libcrypto.so.3 " + copy +
           " && printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=" + copy +
           " bs=1 seek=40 conv=notrunc 2>/dev/null && printf '\\0\\0\\0\\0\\0\\0' | dd of=" + copy +
           " bs=1 seek=58 conv=notrunc 2>/dev/null");
  auto file = File::Open(copy);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_EQ(OurFunctions(**file, SymbolSource::kDynsym),
            OracleFunctions("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "--dyn-syms"));
  ::unlink(copy.c_str());
}

TEST(Symbols, NmAgreesOnAddressesOfDynamicNames) {
  const std::string path = "/usr/lib/x86_64-linux-gnu/libc.so.6";
  auto file = File::Open(path);
  ASSERT_TRUE(file.ok());
  size_t compared = 0;
  for (const std::string& line : RunLines("nm -D --defined-only " + path)) {
    char type = line.size() > 17 ? line[17] : ' ';
    if (std::string("TWi").find(type) == std::string::npos) continue;
    std::string name = line.substr(19);
    auto symbol = (*file)->FindFunction(name);
    // nm marks weak data and functions alike.
    if (!symbol.ok() && type == 'W') continue;
    ASSERT_TRUE(symbol.ok()) << name << ": " << symbol.error().ToString();
    EXPECT_EQ(symbol->address.value, std::stoull(line.substr(0, 16), nullptr, 16)) << name;
    EXPECT_EQ(symbol->ifunc, type == 'i') << name;
    ++compared;
  }
  EXPECT_GT(compared, 1500u);
}

}  // namespace
}  // namespace probed::elf
