// The boundaries and branch targets of real libraries and programs, held against objdump's.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/probe/flow_source.h"
#include "tests/flow/objdump.h"

namespace probed::probe {
namespace {

// Data between functions may be read as any instructions.
class FunctionFilter {
 public:
  explicit FunctionFilter(const elf::File& file) : file_(file) {}

  bool Holds(uint64_t address) {
    if (address - start_ < size_) return true;
    auto bounds = file_.FunctionAt({address});
    if (!bounds) return false;
    start_ = bounds->start.value;
    size_ = bounds->size;
    return true;
  }

 private:
  const elf::File& file_;
  uint64_t start_ = 0, size_ = 0;
};

class ObjdumpTest : public testing::TestWithParam<const char*> {};

TEST_P(ObjdumpTest, BoundariesAndTargetsAreThoseOfObjdump) {
  std::string path = GetParam();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not installed";
  auto file = elf::File::Open(path);
  ASSERT_TRUE(file.ok());
  auto flow = AnalyzeFlow(**file);
  ASSERT_TRUE(flow.ok()) << flow.error().message;
  uint64_t lines = 0, targets = 0, other_boundaries = 0, missing_targets = 0;
  FunctionFilter functions(**file);
  ASSERT_TRUE(Objdump(path, [&](const ObjdumpLine& line) {
    if (!functions.Holds(line.address)) return;
    ++lines;
    if (!(*flow)->IsStart(line.address) && other_boundaries++ < 10) {
      fmt::print("  no boundary at {:x} ({})\n", line.address, line.mnemonic);
    }
    // Of what one of the two did not read as an instruction the target means nothing.
    if (line.target == 0 || !(*flow)->IsStart(line.address)) return;
    ++targets;
    if (!(*flow)->IsEntered(line.target) && missing_targets++ < 10) {
      fmt::print("  no entry at {:x}, where {:x} goes\n", line.target, line.address);
    }
  }));
  fmt::print("[   COUNT  ] {}: {} instructions, {} branches, {} boundaries differ\n", path, lines,
             targets, other_boundaries);
  EXPECT_GT(lines, 100'000u);
  EXPECT_EQ(missing_targets, 0u);
  EXPECT_LT(other_boundaries, 10u);
}

INSTANTIATE_TEST_SUITE_P(Files, ObjdumpTest,
                         testing::Values("/usr/lib/x86_64-linux-gnu/libc.so.6",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                                         "/usr/bin/python3.11", "/usr/bin/bash"));

struct Place {
  const char* path;
  const char* function;
};

// Functions whose own loops or lock prefixes branch into their first bytes (found with objdump).
TEST(FlowOfKnownFunctions, BranchesIntoTheFirstBytesForbidAJump) {
  constexpr const char* kLibc = "/usr/lib/x86_64-linux-gnu/libc.so.6";
  constexpr const char* kLibcrypto = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3";
  constexpr const char* kPython = "/usr/bin/python3.11";
  constexpr Place kPlaces[] = {{kLibc, "memcpy@GLIBC_2.2.5"},
                               {kLibc, "sem_trywait"},
                               {kLibc, "pthread_rwlock_tryrdlock"},
                               {kLibcrypto, "CRYPTO_atomic_or"},
                               {kLibcrypto, "AES_cfb128_encrypt"},
                               {kLibcrypto, "Camellia_cfb8_encrypt"},
                               {kPython, "PyOS_strtol"}};
  for (const Place& place : kPlaces) {
    auto file = elf::File::Open(place.path);
    if (!file.ok()) continue;
    auto symbol = (*file)->FindFunction(place.function);
    ASSERT_TRUE(symbol.ok()) << place.function << ": " << symbol.error().message;
    auto flow = AnalyzeFlow(**file);
    ASSERT_TRUE(flow.ok());
    arch::PatchPlan plan = (*flow)->Plan(symbol->address.value);
    EXPECT_EQ(plan.rule, arch::Rule::kEntered) << place.function;
    EXPECT_NE(plan.tactic, arch::Tactic::kJump) << place.function;
  }
}

}  // namespace
}  // namespace probed::probe
