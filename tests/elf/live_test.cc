// Against running programs: what dlsym, dladdr and the programs themselves say their addresses are.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "elf/file.h"
#include "elf/load_bias.h"
#include "elf/module_map.h"
#include "tests/elf/oracle.h"
#include "tests/support/fork.h"

namespace probed::elf {
namespace {

ModuleMap MapsOf(const std::string& pid) {
  auto text = ReadFile("/proc/" + pid + "/maps");
  EXPECT_TRUE(text.ok());
  auto mappings = ParseMaps(*text);
  EXPECT_TRUE(mappings.ok()) << mappings.error().ToString();
  return ModuleMap(*std::move(mappings));
}

// Overlay file systems show another device in maps than in stat.
const Module* FindModule(const ModuleMap& map, const File& file, const std::string& path) {
  const Module* module = map.FindFile(file.identity().device, file.identity().inode);
  return module != nullptr ? module : map.FindPath(path);
}

// A fixture that runs until this goes out of scope, and what it printed.
class RunningFixture {
 public:
  explicit RunningFixture(const std::string& path) {
    int input[2], output[2];
    EXPECT_EQ(::pipe2(input, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(output, O_CLOEXEC), 0);
    pid_ = ForkOrDie();
    if (pid_ == 0) {
      ::dup2(input[0], 0);
      ::dup2(output[1], 1);
      ::execl(path.c_str(), path.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    ReadAddresses(output[0]);
  }
  ~RunningFixture() {
    ::close(input_);
    ::waitpid(pid_, nullptr, 0);
  }
  RunningFixture(const RunningFixture&) = delete;
  RunningFixture& operator=(const RunningFixture&) = delete;

  std::string pid() const { return std::to_string(pid_); }
  const std::map<std::string, uint64_t>& addresses() const { return addresses_; }

 private:
  // The fixture's last line names its variable.
  void ReadAddresses(int fd) {
    FILE* stream = ::fdopen(fd, "r");
    char line[256];
    while (addresses_.count("fixture_counter") == 0 && std::fgets(line, sizeof line, stream)) {
      std::string text = line;
      size_t space = text.rfind(' ');
      addresses_[text.substr(0, space)] = std::stoull(text.substr(space + 1), nullptr, 16);
    }
    std::fclose(stream);
  }

  pid_t pid_ = -1;
  int input_ = -1;
  std::map<std::string, uint64_t> addresses_;
};

void ExpectAddressesOf(const RunningFixture& program) {
  std::string exe = "/proc/" + program.pid() + "/exe";
  auto file = File::Open(exe);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  ModuleMap map = MapsOf(program.pid());
  const Module* module = FindModule(map, **file, std::filesystem::read_symlink(exe));
  ASSERT_NE(module, nullptr);
  auto bias = LoadBias(**file, *module);
  ASSERT_TRUE(bias.ok()) << bias.error().ToString();
  ASSERT_EQ(program.addresses().size(), 10u);
  for (const auto& [name, address] : program.addresses()) {
    bool is_object = name == "fixture_counter";
    auto symbol = is_object ? (*file)->FindObject(name) : (*file)->FindFunction(name);
    ASSERT_TRUE(symbol.ok()) << symbol.error().ToString();
    EXPECT_EQ(ToRemote(symbol->address, *bias).value, address) << name;
    EXPECT_EQ(ToLink({address}, *bias), symbol->address) << name;
    if (is_object) continue;
    auto places = module->Locate(*(*file)->ToOffset(symbol->address));
    ASSERT_EQ(places.size(), 1u) << name;
    EXPECT_EQ(places[0].value, address) << name;
  }
}

class EveryLayout : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryLayout, FunctionsAreWhereTheProgramSaysTheyAre) {
  if (::access(Fixture(GetParam()).c_str(), X_OK) != 0) GTEST_SKIP() << "no such linker here";
  ExpectAddressesOf(RunningFixture(Fixture(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Live, EveryLayout,
                         ::testing::Values("pie", "no_pie", "static", "static_pie",
                                           "no_separate_code", "lld", "gold", "mold"),
                         [](const auto& layout) { return std::string(layout.param); });

TEST(Live, ADeletedProgramIsReadThroughItsProcess) {
  std::string copy = ::testing::TempDir() + "elf deleted program";
  std::filesystem::copy_file(Fixture("pie"), copy,
                             std::filesystem::copy_options::overwrite_existing);
  RunningFixture program(copy);
  std::filesystem::remove(copy);
  auto file = File::Open("/proc/" + program.pid() + "/exe");
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  ModuleMap map = MapsOf(program.pid());
  EXPECT_TRUE(map.modules().front().deleted);
  EXPECT_EQ(map.modules().front().path, copy);
  auto plain = (*file)->FindFunction("fixture_plain");
  ASSERT_TRUE(plain.ok());
  auto places = map.modules().front().Locate(*(*file)->ToOffset(plain->address));
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].value, program.addresses().at("fixture_plain"));
}

TEST(Live, FilesAreReadThroughTheRootOfAProcess) {
  RunningFixture program(Fixture("pie"));
  std::string root = "/proc/" + program.pid() + "/root";
  auto file = File::Open(root + "/usr/lib/x86_64-linux-gnu/libc.so.6", root);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_TRUE((*file)->FindFunction("malloc").ok());
}

// dlsym is asked for every exported function of the libraries that this test runs on.
TEST(Live, DlsymAgreesOnEveryExportedFunction) {
  size_t compared = 0;
  ModuleMap map = MapsOf("self");
  for (const char* name : {"libc.so.6", "libstdc++.so.6", "libm.so.6"}) {
    void* handle = ::dlopen(name, RTLD_NOW);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    link_map* loaded = nullptr;
    ASSERT_EQ(::dlinfo(handle, RTLD_DI_LINKMAP, &loaded), 0);
    auto file = File::Open(loaded->l_name);
    ASSERT_TRUE(file.ok()) << file.error().ToString();
    const Module* module = FindModule(map, **file, std::filesystem::canonical(loaded->l_name));
    ASSERT_NE(module, nullptr) << loaded->l_name;
    EXPECT_EQ(*LoadBias(**file, *module), loaded->l_addr);
    for (const Symbol& symbol : (*file)->functions()) {
      bool is_plain = symbol.source == SymbolSource::kDynsym && symbol.default_version &&
                      symbol.global && !symbol.ifunc;
      if (!is_plain) continue;
      void* theirs = ::dlvsym(handle, symbol.name.c_str(), symbol.version.c_str());
      auto places = module->Locate(*(*file)->ToOffset(symbol.address));
      ASSERT_EQ(places.size(), 1u) << symbol.name;
      EXPECT_EQ(places[0].value, reinterpret_cast<uint64_t>(theirs)) << symbol.name;
      Dl_info info{};
      ASSERT_NE(::dladdr(theirs, &info), 0);
      EXPECT_EQ(info.dli_saddr, theirs) << symbol.name;
      ++compared;
    }
    ::dlclose(handle);
  }
  EXPECT_GT(compared, 6000u);
}

TEST(Live, OddNamesOfMappedFilesAreReadBack) {
  std::string path = ::testing::TempDir() + "elf two\nlines \\012 (deleted)";
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0700);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, 4096), 0);
  void* mapped = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  int memory = ::memfd_create("elf test code", 0);
  ASSERT_EQ(::ftruncate(memory, 8192), 0);
  void* code = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, memory, 4096);
  ASSERT_NE(mapped, MAP_FAILED);
  if (code == MAP_FAILED) GTEST_SKIP() << "memfd may not be executable here";

  ModuleMap map = MapsOf("self");
  struct stat status {};
  ASSERT_EQ(::fstat(memory, &status), 0);
  auto places = map.Locate(status.st_dev, status.st_ino, {4096 + 17});
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0].value, reinterpret_cast<uint64_t>(code) + 17);
  EXPECT_EQ(map.At({reinterpret_cast<uint64_t>(code)})->path, "/memfd:elf test code");

  const Mapping* odd = map.At({reinterpret_cast<uint64_t>(mapped)});
  ASSERT_NE(odd, nullptr);
  EXPECT_TRUE(odd->path.find("elf two\nlines ") != std::string::npos) << odd->path;
  ASSERT_EQ(::fstat(fd, &status), 0);
  EXPECT_EQ(odd->inode, status.st_ino);
  ::munmap(mapped, 4096);
  ::munmap(code, 4096);
  ::close(fd);
  ::close(memory);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace probed::elf
