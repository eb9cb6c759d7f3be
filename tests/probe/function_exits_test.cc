// Where functions return, against objdump.

#include "engine/probe/function_exits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "engine/probe/function_extent.h"

namespace probed::probe {
namespace {

// Addresses of the ret instructions that objdump shows, with what stands between the mnemonic and
// the end of the line.
std::vector<uint64_t> DisassembleReturns(const std::string& path) {
  const std::string command = "objdump -d --no-show-raw-insn -M att " + path;
  std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command.c_str(), "r"), ::pclose);
  std::vector<uint64_t> returns;
  char line[512];
  while (output && std::fgets(line, sizeof line, output.get())) {
    char *end = nullptr, *text = nullptr;
    const uint64_t address = std::strtoull(line, &end, 16);
    if (end == line || *end != ':') continue;
    text = end + 1 + std::strspn(end + 1, " \t");
    for (const char* prefix : {"repz ", "bnd ", "notrack "})
      if (std::strncmp(text, prefix, std::strlen(prefix)) == 0) text += std::strlen(prefix);
    if (std::strncmp(text, "ret", 3) == 0) returns.push_back(address);
  }
  return returns;
}

std::set<uint64_t> FunctionStarts(const elf::File& file) {
  std::set<uint64_t> starts;
  for (const auto& frame : file.frames())
    starts.insert(frame.start.value);
  for (const auto& symbol : file.functions())
    starts.insert(symbol.address.value);
  return starts;
}

class FunctionExitsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto file = elf::File::Open(GetParam());
    if (!file.ok()) GTEST_SKIP() << file.error().ToString();
    file_ = *file;
  }
  std::shared_ptr<const elf::File> file_;
};

// Those of a function and no others, but for the part that was set aside.
TEST_P(FunctionExitsTest, AgreeWithObjdump) {
  const auto expected = DisassembleReturns(GetParam());
  size_t compared = 0, refused = 0, switches = 0, returns = 0;
  for (const uint64_t start : FunctionStarts(*file_)) {
    const auto function = ExtentOf(*file_, LinkAddr{start});
    if (!function.ok() || function->start.value != start) {
      ++refused;
      continue;
    }
    const auto exits = FindExits(*file_, *function);
    if (!exits.ok()) {
      ++refused;
      continue;
    }
    const auto first = std::ranges::lower_bound(expected, function->start.value);
    const auto last = std::ranges::lower_bound(expected, function->start.value + function->size);
    size_t rets = 0;
    for (auto at = first; at != last; ++at)
      rets += std::ranges::binary_search(exits->returns, file_->ToOffset(LinkAddr{*at})->value);
    EXPECT_EQ(rets + exits->switches, static_cast<size_t>(last - first)) << function->symbol;
    for (const uint64_t offset : exits->returns) {
      const uint64_t address = file_->ToLinkAddr(FileOffset{offset})->value;
      EXPECT_TRUE(std::ranges::binary_search(expected, address)) << fmt::format("{:#x}", address);
    }
    ++compared;
    switches += exits->switches;
    returns += exits->returns.size();
  }
  EXPECT_GT(compared, 100u);
  EXPECT_GT(returns, compared / 2);
  EXPECT_LT(refused * 20, compared);
  EXPECT_LT(switches, 20u);
}

INSTANTIATE_TEST_SUITE_P(Files, FunctionExitsTest,
                         ::testing::Values("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0",
                                           "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
                                           "/usr/bin/bash", ELF_FIXTURES "/elf_go"),
                         [](const auto& of) {
                           std::string name = of.param;
                           name = name.substr(name.rfind('/') + 1);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace probed::probe
