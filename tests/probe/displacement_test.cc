#include "engine/probe/displacement.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <vector>

namespace probed::probe {
namespace {

using Bytes = std::vector<uint8_t>;

std::vector<arch::Instruction> Region(std::initializer_list<Bytes> codes) {
  std::vector<arch::Instruction> region;
  uint64_t address = 0x401000;
  for (const Bytes& code : codes) {
    auto instruction = arch::Decode(code, address);
    EXPECT_TRUE(instruction.ok());
    if (!instruction.ok()) continue;
    address += instruction->length;
    region.push_back(*std::move(instruction));
  }
  return region;
}

// In the file of that fixture (tests/elf/fixtures).
std::string RuleIn(const std::string& fixture, std::initializer_list<Bytes> codes) {
  auto file = elf::File::Open(ELF_FIXTURES "/elf_" + fixture);
  EXPECT_TRUE(file.ok()) << file.error().ToString();
  return file.ok() ? std::string(RuleAgainstDisplacing(**file, Region(codes)).why) : "";
}

const Bytes kMove = {0x48, 0x89, 0xf8}, kSubtract = {0x48, 0x29, 0xf8};
const Bytes kFiveByteMove = {0xb8, 1, 0, 0, 0};

TEST(Displacement, WhatCannotBeSteppedToItsEndStays) {
  EXPECT_EQ(RuleIn("pie", {kMove, kSubtract}), "");
  EXPECT_NE(RuleIn("pie", {kMove, {0x0f, 0x05}}).find("system call"), std::string::npos);
  EXPECT_NE(RuleIn("pie", {kMove, {0x9c}}).find("trap flag"), std::string::npos);
  EXPECT_NE(RuleIn("pie", {{0xf3, 0xa4}, kMove}).find("repeated"), std::string::npos);
  EXPECT_EQ(RuleIn("pie", {{0xa4}, kMove}), "");
}

TEST(Displacement, GoroutinesAreParkedAnywhereButInTheStackCheck) {
  if (!std::filesystem::exists(ELF_FIXTURES "/elf_go")) GTEST_SKIP() << "there is no Go here";
  EXPECT_NE(RuleIn("go", {kMove, kSubtract}).find("goroutine"), std::string::npos);
  EXPECT_EQ(RuleIn("go", {kFiveByteMove}), "");
  const Bytes compare = {0x49, 0x3b, 0x66, 0x10};
  EXPECT_EQ(RuleIn("go", {compare, {0x76, 0x20}}), "");
  EXPECT_EQ(RuleIn("go", {compare, {0x0f, 0x86, 0, 1, 0, 0}}), "");
  EXPECT_NE(RuleIn("go", {compare, kMove}), "");
}

}  // namespace
}  // namespace probed::probe
