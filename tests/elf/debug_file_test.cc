#include "elf/debug_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "elf/file.h"
#include "elf/xz.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

namespace fs = std::filesystem;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = ::testing::TempDir() + "elf_root_XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string Add(const std::string& from, const std::string& name) const {
    fs::create_directories(fs::path(path_ + name).parent_path());
    fs::copy_file(from, path_ + name, fs::copy_options::overwrite_existing);
    return path_ + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<Symbol> Find(const std::string& path, const std::string& root, const std::string& name) {
  auto file = File::Open(path, root);
  EXPECT_TRUE(file.ok());
  return (*file)->FindFunction(name);
}

uint64_t AddressInWhole(const std::string& name) {
  return Find(Fixture("pie"), "", name)->address.value;
}

void ExpectFrom(const Result<Symbol>& symbol, SymbolSource source, const std::string& name) {
  ASSERT_TRUE(symbol.ok()) << symbol.error().ToString();
  EXPECT_EQ(symbol->source, source);
  EXPECT_EQ(symbol->address.value, AddressInWhole(name));
}

TEST(DebugFile, IsFoundByTheLinkBesideTheFile) {
  ExpectFrom(Find(Fixture("linked"), "", "shapes::Circle::Grow"), SymbolSource::kDebugFile,
             "shapes::Circle::Grow");
}

TEST(DebugFile, IsFoundInTheDebugDirectoriesOfARoot) {
  for (const char* place : {"/opt/.debug/", "/usr/lib/debug/opt/"}) {
    TemporaryDirectory root;
    std::string program = root.Add(Fixture("linked"), "/opt/program");
    EXPECT_FALSE(Find(program, root.path(), "fixture_plain").ok());
    root.Add(Fixture("linked.debug"), std::string(place) + "elf_linked.debug");
    ExpectFrom(Find(program, root.path(), "fixture_plain"), SymbolSource::kDebugFile,
               "fixture_plain");
  }
}

TEST(DebugFile, IsFoundByBuildId) {
  TemporaryDirectory root;
  std::string program = root.Add(Fixture("stripped"), "/bin/program");
  std::string id = (*File::Open(program))->identity().build_id;
  ASSERT_EQ(id.size(), 40u);
  root.Add(Fixture("linked.debug"),
           "/usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  ExpectFrom(Find(program, root.path(), "fixture_plain"), SymbolSource::kDebugFile,
             "fixture_plain");
}

TEST(DebugFile, OfAnotherBuildIsNotTaken) {
  TemporaryDirectory root;
  std::string program = root.Add(Fixture("linked"), "/opt/program");
  std::string debug = root.Add(Fixture("linked.debug"), "/opt/elf_linked.debug");
  std::ofstream(debug, std::ios::app) << "changed";
  auto symbol = Find(program, root.path(), "fixture_plain");
  ASSERT_FALSE(symbol.ok());
  EXPECT_EQ(symbol.error().reason, "SYMBOL_NOT_FOUND");
}

TEST(DebugFile, MiniDebugInfoIsRead) {
  ExpectFrom(Find(Fixture("mini"), "", "fixture_plain"), SymbolSource::kDebugData, "fixture_plain");
}

TEST(Root, AbsoluteLinksStayInside) {
  TemporaryDirectory root;
  root.Add(Fixture("pie"), "/real/library");
  fs::create_directories(root.path() + "/lib");
  fs::create_symlink("/real/library", root.path() + "/lib/link");
  fs::create_symlink("/etc/../../../../etc/passwd", root.path() + "/lib/out");
  EXPECT_TRUE(File::Open(root.path() + "/lib/link", root.path()).ok());
  auto out = File::Open(root.path() + "/lib/out", root.path());
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error().code, ErrorCode::kNotFound);
}

TEST(Xz, StopsAtTheLimitAndAtDamage) {
  std::string path = ::testing::TempDir() + "elf_zeros.xz";
  RunLines("head -c 3000000 /dev/zero | xz -c > " + path);
  std::ifstream stream(path, std::ios::binary);
  std::vector<uint8_t> packed((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_EQ(DecompressXz(packed, 3000001).size(), 3000000u);
  EXPECT_EQ(DecompressXz(packed, 4000000).size(), 3000000u);
  EXPECT_TRUE(DecompressXz(packed, 2999999).empty());
  packed.resize(packed.size() / 2);
  EXPECT_TRUE(DecompressXz(packed, 4000000).empty());
  EXPECT_TRUE(DecompressXz({}, 4000000).empty());
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace probed::elf
