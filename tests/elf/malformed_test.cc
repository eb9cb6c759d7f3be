// Files that lie. Whatever they say, reading them ends, stays small and does not crash; run this
// under the sanitizers too. All of it is from one seed, so a failure repeats.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "base/unique_fd.h"
#include "elf/file.h"
#include "elf/notes.h"
#include "elf/symbol_table.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes ReadBytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return Bytes((std::istreambuf_iterator<char>(stream)), {});
}

// A file without a name, to write one case after another into.
class Scratch {
 public:
  Scratch() : fd_(::memfd_create("malformed", MFD_CLOEXEC)) {}

  std::string Write(const Bytes& bytes) const {
    EXPECT_EQ(::ftruncate(fd_.get(), 0), 0);
    EXPECT_EQ(::pwrite(fd_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(fd_.get());
  }

 private:
  UniqueFd fd_;
};

// Asks a file everything there is to ask. True when it opened.
bool Exercise(const std::string& path) {
  auto file = File::Open(path);
  if (!file.ok()) {
    EXPECT_FALSE(file.error().reason.empty());
    return false;
  }
  size_t asked = 0;
  for (const Symbol& symbol : (*file)->functions()) {
    if (++asked > 20) break;
    (void)(*file)->FunctionAt(symbol.address + 1);
    (void)(*file)->AliasesAt(symbol.address);
    (void)(*file)->FindFunction(symbol.name);
  }
  for (const Segment& segment : (*file)->segments()) {
    (void)(*file)->FunctionAt(segment.address + segment.file_size / 2);
    (void)(*file)->Bytes(segment.offset, 64);
    (void)(*file)->ToLinkAddr(segment.offset);
  }
  (void)(*file)->FindFunction("fixture_plainn");
  (void)(*file)->FindFunction("shapes::Area");
  (void)(*file)->FindObject("_r_debug");
  (void)(*file)->SearchFunctions("*a*", 10);
  return true;
}

uint64_t InterestingNumber(std::mt19937_64& random) {
  constexpr uint64_t kNumbers[] = {0,          1,          0x7f,       0xff,           0xffff,
                                   0x10000,    0x7fffffff, 0x80000000, 0xffffffff,     1ull << 32,
                                   1ull << 40, 1ull << 62, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};
  return kNumbers[random() % std::size(kNumbers)];
}

struct Range {
  size_t start, size;
};

// Where a change is most likely to matter: headers and the tables that we read.
std::vector<Range> TablesOf(const std::string& path) {
  auto image = Image::Open(path, "");
  auto headers = ReadHeaders(*image, path);
  std::vector<Range> ranges = {
      {0, sizeof(Elf64_Ehdr)},
      {headers->header.e_phoff, headers->program.size() * sizeof(Elf64_Phdr)},
      {headers->header.e_shoff, headers->sections.size() * sizeof(Elf64_Shdr)}};
  for (const Section& section : headers->sections) {
    bool is_code = (section.header.sh_flags & SHF_EXECINSTR) != 0;
    if (is_code || section.header.sh_type == SHT_NOBITS || section.header.sh_size == 0) continue;
    if (section.name.starts_with(".debug")) continue;
    ranges.push_back({section.header.sh_offset, section.header.sh_size});
  }
  return ranges;
}

void Mutate(const std::vector<Range>& tables, std::mt19937_64& random, Bytes* bytes) {
  size_t changes = 1 + random() % 4;
  for (size_t i = 0; i < changes; ++i) {
    Range table = tables[random() % tables.size()];
    size_t width = size_t{1} << (random() % 4);
    size_t at = table.start + random() % table.size / width * width;
    uint64_t value = random() % 2 == 0 ? InterestingNumber(random) : random();
    if (at + width <= bytes->size()) std::memcpy(bytes->data() + at, &value, width);
  }
}

class EveryKind : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::access(Fixture(GetParam()).c_str(), R_OK) != 0) GTEST_SKIP() << "no Go toolchain";
  }
};

TEST_P(EveryKind, MutatedFilesAreSurvived) {
  std::string path = Fixture(GetParam());
  Bytes original = ReadBytes(path);
  auto tables = TablesOf(path);
  std::mt19937_64 random(20240613);
  Scratch scratch;
  constexpr int kRounds = 1000;
  int opened = 0;
  for (int round = 0; round < kRounds; ++round) {
    Bytes bytes = original;
    Mutate(tables, random, &bytes);
    opened += Exercise(scratch.Write(bytes)) ? 1 : 0;
  }
  // A mutator that only ever breaks the magic number would prove nothing.
  EXPECT_GT(opened, kRounds / 4);
  EXPECT_LT(opened, kRounds);
}

// The file inside .gnu_debugdata is read in memory, which libelf does by other code.
TEST_P(EveryKind, MutatedMemoryIsSurvived) {
  std::string path = Fixture(GetParam());
  Bytes original = ReadBytes(path);
  auto tables = TablesOf(path);
  std::mt19937_64 random(20250307);
  int opened = 0;
  for (int round = 0; round < 1000; ++round) {
    Bytes bytes = original;
    Mutate(tables, random, &bytes);
    bytes.resize(bytes.size() - random() % 3 * 8);
    Image image(std::move(bytes));
    auto headers = ReadHeaders(image, path);
    if (!headers.ok()) continue;
    ++opened;
    auto segments = ReadSegments(*headers, image.size(), path);
    if (segments.ok()) (void)ReadDynsym(image, *headers, *segments);
    (void)ReadSymtab(image, *headers, SymbolSource::kDebugData);
    (void)ReadNotes(image, *headers);
  }
  EXPECT_GT(opened, 250);
}

TEST_P(EveryKind, TruncatedFilesAreSurvived) {
  Bytes bytes = ReadBytes(Fixture(GetParam()));
  Scratch scratch;
  int opened = 0;
  for (size_t size = bytes.size(), step = size / 300 + 1; size > 0;) {
    opened += Exercise(scratch.Write(bytes)) ? 1 : 0;
    bytes.resize(size -= std::min(size, size < 600 ? 1 : step));
  }
  EXPECT_GT(opened, 0) << "the whole file at least";
}

INSTANTIATE_TEST_SUITE_P(Malformed, EveryKind,
                         ::testing::Values("pie", "stripped", "linked", "mini", "go_stripped"),
                         [](const auto& kind) { return std::string(kind.param); });

template <class T>
void Poke(Bytes* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof value);
}

std::string ReasonOf(const Scratch& scratch, const Bytes& bytes) {
  auto file = File::Open(scratch.Write(bytes));
  return file.ok() ? "" : file.error().reason;
}

TEST(Malformed, HasAReason) {
  Bytes good = ReadBytes(Fixture("pie"));
  Scratch scratch;
  auto changed = [&](auto change) {
    Bytes bytes = good;
    change(&bytes);
    return ReasonOf(scratch, bytes);
  };
  EXPECT_EQ(ReasonOf(scratch, good), "");
  EXPECT_EQ(ReasonOf(scratch, {}), "NOT_ELF");
  EXPECT_EQ(changed([](Bytes* b) { b->resize(20); }), "ELF_MALFORMED");
  EXPECT_EQ(changed([](Bytes* b) { b->resize(100); }), "ELF_MALFORMED");
  EXPECT_EQ(changed([](Bytes* b) { b->resize(b->size() / 8); }), "ELF_MALFORMED");
  EXPECT_EQ(changed([](Bytes* b) { (*b)[0] = 'x'; }), "NOT_ELF");
  EXPECT_EQ(changed([](Bytes* b) { (*b)[EI_CLASS] = ELFCLASS32; }), "ELF_CLASS");
  EXPECT_EQ(changed([](Bytes* b) { (*b)[EI_DATA] = ELFDATA2MSB; }), "ELF_CLASS");
  auto poke = [&](size_t at, auto value) { return changed([&](Bytes* b) { Poke(b, at, value); }); };
  EXPECT_EQ(poke(offsetof(Elf64_Ehdr, e_type), uint16_t{ET_REL}), "ELF_TYPE");
  EXPECT_EQ(poke(offsetof(Elf64_Ehdr, e_phoff), UINT64_MAX), "ELF_MALFORMED");
  EXPECT_EQ(poke(offsetof(Elf64_Ehdr, e_phnum), uint16_t{0xffff}), "ELF_MALFORMED");
  EXPECT_EQ(poke(offsetof(Elf64_Ehdr, e_phentsize), uint16_t{1}), "ELF_MALFORMED");
  // Section headers are not needed to run, so not to probe.
  EXPECT_EQ(poke(offsetof(Elf64_Ehdr, e_shoff), UINT64_MAX), "");
  EXPECT_EQ(poke(offsetof(Elf64_Ehdr, e_shstrndx), uint16_t{0xfffe}), "");
}

TEST(Malformed, ATableThatClaimsASparseTerabyteIsNotReadWhole) {
  Bytes bytes = ReadBytes(Fixture("pie"));
  auto image = Image::Open(Fixture("pie"), "");
  auto headers = *ReadHeaders(*image, "");
  for (size_t i = 0; i < headers.sections.size(); ++i) {
    if (headers.sections[i].header.sh_type != SHT_SYMTAB) continue;
    size_t at = headers.header.e_shoff + i * sizeof(Elf64_Shdr);
    Poke(&bytes, at + offsetof(Elf64_Shdr, sh_size), uint64_t{24} << 35);
  }
  Scratch scratch;
  std::string path = scratch.Write(bytes);
  if (::truncate(path.c_str(), off_t{1} << 40) != 0) GTEST_SKIP() << "no sparse files here";
  auto file = File::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_FALSE((*file)->FindFunction("shapes::Area(int)").ok());
  struct rusage usage {};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 2 << 20) << "KiB";
}

TEST(Malformed, AnEmptyImageIsReadToItsEnd) {
  const Image image(std::vector<uint8_t>{});
  EXPECT_TRUE(image.ReadInto(0, nullptr, 0));
  EXPECT_FALSE(image.Holds(0, 1));
  EXPECT_TRUE(image.Read(0, 1).empty());
}

// libelf would make room for all of them when it opens the file.
TEST(Malformed, AClaimOfManySparseSectionsIsRefused) {
  Bytes bytes = ReadBytes(Fixture("pie"));
  auto headers = *ReadHeaders(Image(bytes), "");
  Poke(&bytes, offsetof(Elf64_Ehdr, e_shnum), uint16_t{0});
  Poke(&bytes, headers.header.e_shoff + offsetof(Elf64_Shdr, sh_size), uint64_t{100000});
  bytes.resize(16 << 20);
  EXPECT_EQ(ReasonOf(Scratch(), bytes), "ELF_MALFORMED");
}

// Many names that share one long tail: far more text than the file holds.
TEST(Malformed, NamesMayNotAddUpWithoutEnd) {
  Bytes bytes = ReadBytes(Fixture("pie"));
  auto image = Image::Open(Fixture("pie"), "");
  auto headers = *ReadHeaders(*image, "");
  size_t old_end = bytes.size();
  constexpr size_t kSymbols = 100000, kName = 60000;
  for (size_t i = 0; i < headers.sections.size(); ++i) {
    size_t at = headers.header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section = headers.sections[i].header;
    if (section.sh_type == SHT_SYMTAB) {
      section.sh_offset = old_end;
      section.sh_size = kSymbols * sizeof(Elf64_Sym);
    } else if (headers.sections[i].name == ".strtab") {
      section.sh_offset = old_end + kSymbols * sizeof(Elf64_Sym);
      section.sh_size = kName + 2;
    }
    Poke(&bytes, at, section);
  }
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_shndx = 1;
  for (size_t i = 0; i < kSymbols; ++i) {
    symbol.st_value = headers.header.e_entry + i % 16;
    const auto* raw = reinterpret_cast<const uint8_t*>(&symbol);
    bytes.insert(bytes.end(), raw, raw + sizeof symbol);
  }
  bytes.push_back(0);
  bytes.insert(bytes.end(), kName, 'a');
  bytes.push_back(0);
  Scratch scratch;
  auto file = File::Open(scratch.Write(bytes));
  ASSERT_TRUE(file.ok());
  size_t text = 0;
  for (const Symbol& each : (*file)->functions())
    text += each.name.size();
  EXPECT_GT(text, kName);
  EXPECT_LT(text, size_t{32} << 20);
}

}  // namespace
}  // namespace probed::elf
