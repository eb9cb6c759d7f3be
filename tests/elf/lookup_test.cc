#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "elf/cxx_name.h"
#include "elf/file.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

const std::string kLibrary = "/usr/lib/x86_64-linux-gnu/";

std::shared_ptr<const File> MustOpen(const std::string& path) {
  auto file = File::Open(path);
  EXPECT_TRUE(file.ok()) << file.error().ToString();
  return file.ok() ? *file : nullptr;
}

std::string Mangled(const File& file, const std::string& name) {
  auto symbol = file.FindFunction(name);
  return symbol.ok() ? symbol->name : symbol.error().reason;
}

Error LookupError(const File& file, const std::string& name) {
  auto symbol = file.FindFunction(name);
  EXPECT_FALSE(symbol.ok()) << name;
  return symbol.ok() ? Error{} : symbol.error();
}

TEST(FindFunction, TakesTheDefaultVersionUnlessOneIsNamed) {
  auto libc = MustOpen(kLibrary + "libc.so.6");
  auto standard = libc->FindFunction("memcpy");
  auto old = libc->FindFunction("memcpy@GLIBC_2.2.5");
  ASSERT_TRUE(standard.ok() && old.ok());
  EXPECT_EQ(standard->version, "GLIBC_2.14");
  EXPECT_TRUE(standard->ifunc && standard->default_version);
  EXPECT_FALSE(old->ifunc || old->default_version);
  EXPECT_NE(standard->address, old->address);
  EXPECT_EQ(libc->FindFunction("memcpy@@GLIBC_2.14")->address, standard->address);
  EXPECT_EQ(LookupError(*libc, "memcpy@GLIBC_9").reason, "SYMBOL_NOT_FOUND");
  EXPECT_EQ(MustOpen(kLibrary + "libm.so.6")->FindFunction("pow")->version, "GLIBC_2.29");
}

TEST(FindFunction, NamesOfOneAddressAreAliases) {
  auto libc = MustOpen(kLibrary + "libc.so.6");
  std::vector<std::string> names;
  for (const Symbol& alias : libc->AliasesAt(libc->FindFunction("open")->address)) {
    names.push_back(alias.name);
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"open", "open64", "__open64"}));
  EXPECT_EQ(libc->FunctionAt(libc->FindFunction("__open64")->address)->symbol, "open");
}

TEST(FindFunction, UnderstandsCxxNames) {
  auto file = MustOpen(Fixture("pie"));
  EXPECT_EQ(Mangled(*file, "_ZN6shapes4AreaEi"), "_ZN6shapes4AreaEi");
  EXPECT_EQ(Mangled(*file, "shapes::Area(int)"), "_ZN6shapes4AreaEi");
  EXPECT_EQ(Mangled(*file, "shapes::Area(long)"), "_ZN6shapes4AreaEl");
  EXPECT_EQ(Mangled(*file, "shapes::Circle::Grow"), "_ZNK6shapes6Circle4GrowEi");
  EXPECT_EQ(Mangled(*file, "shapes::Circle::Grow(int) const"), "_ZNK6shapes6Circle4GrowEi");
  EXPECT_EQ(Mangled(*file, "shapes::Scale<int>"), "_ZN6shapes5ScaleIiEET_S1_");
  EXPECT_EQ(Mangled(*file, "shapes::Scale"), "_ZN6shapes5ScaleIiEET_S1_");
  EXPECT_EQ(Mangled(*file, "shapes::(anonymous namespace)::Hidden"),
            "_ZN6shapes12_GLOBAL__N_16HiddenEi");
  // C1 and C2 of a constructor are one function here.
  EXPECT_THAT(Mangled(*file, "shapes::Circle::Circle"),
              ::testing::StartsWith("_ZN6shapes6CircleC"));
  EXPECT_EQ(Mangled(*MustOpen(kLibrary + "libstdc++.so.6"), "operator new(unsigned long)"),
            "_Znwm");
}

TEST(FindFunction, AnAmbiguousNameIsAnErrorWithChoicesThatWork) {
  auto file = MustOpen(Fixture("pie"));
  Error error = LookupError(*file, "shapes::Area");
  EXPECT_EQ(error.reason, "SYMBOL_AMBIGUOUS");
  EXPECT_EQ(error.metadata["choices"], "_ZN6shapes4AreaEi,_ZN6shapes4AreaEl");
  EXPECT_THAT(error.message, ::testing::HasSubstr("shapes::Area(long)"));
}

TEST(FindFunction, TwinsOfOneNameAreToldApartByOffset) {
  auto file = MustOpen(Fixture("pie"));
  Error error = LookupError(*file, "Twin");
  EXPECT_EQ(error.reason, "SYMBOL_AMBIGUOUS");
  std::string choices = error.metadata["choices"];
  size_t comma = choices.find(',');
  ASSERT_NE(comma, std::string::npos) << choices;
  for (const std::string& choice : {choices.substr(0, comma), choices.substr(comma + 1)}) {
    auto address = file->ToLinkAddr({std::stoull(choice, nullptr, 16)});
    ASSERT_TRUE(address.has_value()) << choice;
    EXPECT_EQ(file->FunctionAt(*address)->symbol, "_ZL4Twini");
  }
}

TEST(FindFunction, AnImportIsNamedAsOne) {
  Error error = LookupError(*MustOpen("/usr/bin/bash"), "malloc");
  EXPECT_EQ(error.reason, "SYMBOL_IS_IMPORT");
}

TEST(FindFunction, SuggestsWhatWasMeant) {
  auto libc = MustOpen(kLibrary + "libc.so.6");
  EXPECT_THAT(LookupError(*libc, "pthread_craete").metadata["suggestions"],
              ::testing::StartsWith("pthread_create"));
  EXPECT_THAT(LookupError(*libc, "Malloc").metadata["suggestions"],
              ::testing::StartsWith("malloc"));
  EXPECT_THAT(LookupError(*MustOpen("/usr/bin/bash"), "readlin").metadata["suggestions"],
              ::testing::StartsWith("readline"));
  EXPECT_EQ(LookupError(*MustOpen(Fixture("pie")), "shapes::Circle::Gro").metadata["suggestions"],
            "shapes::Circle::Grow");
  EXPECT_THAT(LookupError(*MustOpen(kLibrary + "libstdc++.so.6"), "std::bad_castt::what")
                  .metadata["suggestions"],
              ::testing::StartsWith("std::bad_cast::what"));
  EXPECT_EQ(LookupError(*libc, "zzzzqqqqxxxx").metadata.count("suggestions"), 0u);
}

TEST(FindFunction, AnUnknownNameInALargeFileIsAnsweredQuickly) {
  auto file = MustOpen(kLibrary + "libcrypto.so.3");
  size_t names = file->functions().size();
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(file->FindFunction("no::such_functionn(int)").ok());
  auto spent = std::chrono::steady_clock::now() - start;
  // Generous: it takes a few milliseconds. What this catches is work that grows with the square.
  EXPECT_LT(spent, std::chrono::seconds(2)) << names << " names";
}

TEST(FindObject, FindsVariables) {
  auto counter = MustOpen(Fixture("pie"))->FindObject("fixture_counter");
  ASSERT_TRUE(counter.ok());
  EXPECT_EQ(counter->size, sizeof(int));
  auto loader = MustOpen("/lib64/ld-linux-x86-64.so.2");
  auto debug = loader->FindObject("_r_debug");
  ASSERT_TRUE(debug.ok()) << debug.error().ToString();
  for (const OracleSymbol& symbol : ReadelfSymbols("/lib64/ld-linux-x86-64.so.2", "--dyn-syms")) {
    if (symbol.name == "_r_debug") {
      EXPECT_EQ(debug->address.value, symbol.address);
    }
    if (symbol.name != "_dl_debug_state") continue;
    EXPECT_EQ(loader->FindFunction("_dl_debug_state")->address.value, symbol.address);
  }
  auto wrong = loader->FindObject("_r_debugg");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().metadata["suggestions"], "_r_debug");
}

TEST(SearchFunctions, MatchesMangledAndDemangledNames) {
  auto file = MustOpen(Fixture("pie"));
  auto names = [&](const std::string& pattern, size_t limit) {
    std::vector<std::string> found;
    for (const Symbol& symbol : file->SearchFunctions(pattern, limit))
      found.push_back(symbol.name);
    return found;
  };
  EXPECT_THAT(names("shapes::Area(*)", 10),
              ::testing::ElementsAre("_ZN6shapes4AreaEi", "_ZN6shapes4AreaEl"));
  EXPECT_THAT(names("fixture_[pa]l*", 10),
              ::testing::UnorderedElementsAre("fixture_plain", "fixture_alias"));
  EXPECT_EQ(names("*", 3).size(), 3u);
  EXPECT_TRUE(names("nothing*", 3).empty());
}

TEST(CxxName, TakesNamesApart) {
  EXPECT_EQ(WithoutSignature("int ns::f<int (*)(long)>(int, std::vector<int>) const"),
            "ns::f<int (*)(long)>");
  EXPECT_EQ(WithoutSignature("a::operator()(int)"), "a::operator()");
  EXPECT_EQ(WithoutSignature("a::operator()"), "a::operator()");
  EXPECT_EQ(WithoutSignature("(anonymous namespace)::f"), "(anonymous namespace)::f");
  EXPECT_EQ(WithoutSignature("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  EXPECT_EQ(WithoutSignature("f(int) [clone .cold]"), "f(int) [clone .cold]");
  EXPECT_EQ(WithoutSignature("plain"), "plain");
  EXPECT_EQ(WithoutSignature(")))"), ")))");
  EXPECT_EQ(WithoutTemplateArguments("ns::f<a<b> >"), "ns::f");
  EXPECT_EQ(WithoutTemplateArguments("a::operator>"), "a::operator>");
  EXPECT_EQ(LastIdentifier("ns::Class::~Class()"), "Class");
  EXPECT_EQ(LastIdentifier("std::vector<int>::operator[]"), "");
}

}  // namespace
}  // namespace probed::elf
