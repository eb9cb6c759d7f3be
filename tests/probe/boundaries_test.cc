// Instruction boundaries against objdump, for functions of this machine's libc.

#include "engine/probe/boundaries.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <set>

namespace probed::probe {
namespace {

std::string LibcPath() {
  return "/lib/x86_64-linux-gnu/libc.so.6";
}

// Addresses at which objdump shows an instruction.
std::set<uint64_t> Disassemble(uint64_t start, uint64_t end) {
  char command[256];
  std::snprintf(command, sizeof command,
                "objdump -d --no-show-raw-insn --start-address=%#lx --stop-address=%#lx %s", start,
                end, LibcPath().c_str());
  std::unique_ptr<FILE, int (*)(FILE*)> output(::popen(command, "r"), ::pclose);
  std::set<uint64_t> starts;
  char line[512];
  uint64_t address = 0;
  char colon = 0;
  while (output && std::fgets(line, sizeof line, output.get())) {
    if (std::sscanf(line, " %lx%c", &address, &colon) == 2 && colon == ':') starts.insert(address);
  }
  return starts;
}

TEST(Boundaries, AgreeWithObjdump) {
  auto file = elf::File::Open(LibcPath());
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  Boundaries boundaries;
  size_t checked = 0;
  for (const char* name : {"malloc", "getaddrinfo", "qsort_r", "fopen", "strtol"}) {
    auto symbol = (*file)->FindFunction(name);
    ASSERT_TRUE(symbol.ok()) << name;
    uint64_t start = symbol->address.value, end = start + symbol->size;
    auto expected = Disassemble(start, end);
    ASSERT_FALSE(expected.empty()) << name;
    for (uint64_t address = start; address < end; ++address, ++checked) {
      bool begins = boundaries.At(**file, LinkAddr{address}) == Boundary::kYes;
      ASSERT_EQ(begins, expected.contains(address)) << name << " at " << std::hex << address;
    }
  }
  EXPECT_GT(checked, 500u);
}

}  // namespace
}  // namespace probed::probe
