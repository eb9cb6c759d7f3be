#include "elf/demangle.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "elf/file.h"
#include "elf/glob.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

constexpr const char* kAbbreviations[] = {"Ss", "Si", "So", "Sd"};

std::vector<std::string> MangledNames(const std::string& path) {
  auto file = File::Open(path);
  EXPECT_TRUE(file.ok());
  std::vector<std::string> names;
  for (const Symbol& symbol : (*file)->functions()) {
    if (LooksMangled(symbol.name)) names.push_back(symbol.name);
  }
  return names;
}

std::string CxaDemangle(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = text == nullptr ? name : text;
  ::free(text);
  return result;
}

// c++filt spells the abbreviations of namespace std out; people do not.
bool IsAbbreviated(const std::string& name) {
  return std::any_of(std::begin(kAbbreviations), std::end(kAbbreviations),
                     [&](const char* part) { return name.find(part) != std::string::npos; });
}

TEST(Demangle, AgreesWithTheCxxLibraryAndCxxfilt) {
  auto names = MangledNames("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
  std::string list = ::testing::TempDir() + "elf_mangled_names";
  std::ofstream stream(list);
  for (const std::string& name : names)
    stream << name << "\n";
  stream.close();
  auto filtered = RunLines("c++filt < " + list);
  ASSERT_EQ(filtered.size(), names.size());
  size_t compared = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(Demangle(names[i]), CxaDemangle(names[i]));
    if (IsAbbreviated(names[i])) continue;
    EXPECT_EQ(Demangle(names[i]), filtered[i]);
    ++compared;
  }
  EXPECT_GT(compared, 2000u);
}

TEST(Demangle, LeavesOtherNamesAlone) {
  EXPECT_EQ(Demangle("readline"), "readline");
  EXPECT_EQ(Demangle("_Z"), "_Z");
  EXPECT_EQ(Demangle("_ZN3foo"), "_ZN3foo");
  EXPECT_EQ(Demangle(""), "");
}

TEST(Demangle, ReadsRustNames) {
  EXPECT_EQ(Demangle("_ZN4core3fmt5write17h01234567890abcdeE"), "core::fmt::write");
  EXPECT_EQ(Demangle("_RNvC6_123foo3bar"), "123foo::bar");
}

// Each pair doubles the one before: 30 of them would be tens of gigabytes of text.
TEST(Demangle, RefusesNamesThatGrowWithoutEnd) {
  std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1fI1AIiiE";
  for (size_t i = 0; i < 34; ++i) {
    name += fmt::format("S_IS{0}_S{0}_E", digits[i]);
  }
  name += "EvT_";
  EXPECT_EQ(Demangle(name), name);
}

TEST(Demangle, SurvivesDeepNesting) {
  std::string name = "_Z1f" + std::string(10000, 'P') + "i";
  EXPECT_FALSE(Demangle(name).empty());
  EXPECT_FALSE(Demangle("_Z1fI" + std::string(8000, 'J')).empty());
}

TEST(Glob, FollowsTheShell) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("read*", "readline"));
  EXPECT_TRUE(GlobMatches("*l?n*", "readline"));
  EXPECT_FALSE(GlobMatches("read", "readline"));
  EXPECT_FALSE(GlobMatches("readline?", "readline"));
  EXPECT_TRUE(GlobMatches("[a-r]ead[!a-k]ine", "readline"));
  EXPECT_FALSE(GlobMatches("[!r]*", "readline"));
  EXPECT_TRUE(GlobMatches("a[]]b", "a]b"));
  EXPECT_TRUE(GlobMatches("a[b", "a[b"));
  EXPECT_TRUE(GlobMatches("a\\*", "a*"));
  EXPECT_FALSE(GlobMatches("a\\*", "ab"));
  EXPECT_FALSE(GlobMatches("a\\", "a"));
}

TEST(Glob, ManyStarsAreNotSlow) {
  std::string pattern, name(4000, 'a');
  for (int i = 0; i < 200; ++i)
    pattern += "*a";
  EXPECT_FALSE(GlobMatches(pattern + "b", name));
}

}  // namespace
}  // namespace probed::elf
