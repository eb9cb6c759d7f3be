#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iomanip>
#include <sstream>

#include "base/unique_fd.h"
#include "elf/file.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

std::vector<std::string> AllFiles() {
  std::vector<std::string> files = SystemFiles();
  for (const char* name : {"pie", "no_pie", "static", "static_pie", "no_separate_code", "lld",
                           "gold", "mold", "stripped", "linked", "mini", "go"}) {
    files.push_back(Fixture(name));
  }
  files.emplace_back("/usr/bin/busybox");
  return Present(files);
}

std::shared_ptr<const File> MustOpen(const std::string& path) {
  auto file = File::Open(path);
  EXPECT_TRUE(file.ok()) << file.error().ToString();
  return file.ok() ? *file : nullptr;
}

struct OracleSegment {
  uint64_t offset = 0, address = 0, file_size = 0, memory_size = 0;
  std::string flags;
};

std::vector<OracleSegment> ReadelfSegments(const std::string& path) {
  std::vector<OracleSegment> segments;
  for (const std::string& line : RunLines("readelf -lW " + path)) {
    std::istringstream fields(line);
    std::string type, physical;
    OracleSegment segment;
    fields >> type >> std::hex >> std::setbase(0) >> segment.offset >> segment.address >>
        physical >> segment.file_size >> segment.memory_size;
    if (type != "LOAD") continue;
    for (std::string word; fields >> word && word[0] != '0';)
      segment.flags += word;
    segments.push_back(segment);
  }
  return segments;
}

std::string FlagsOf(const Segment& segment) {
  return std::string(segment.readable ? "R" : "") + (segment.writable ? "W" : "") +
         (segment.executable ? "E" : "");
}

TEST(Headers, SegmentsAreThoseThatReadelfLists) {
  for (const std::string& path : AllFiles()) {
    auto file = MustOpen(path);
    auto theirs = ReadelfSegments(path);
    ASSERT_EQ(file->segments().size(), theirs.size()) << path;
    for (size_t i = 0; i < theirs.size(); ++i) {
      const Segment& ours = file->segments()[i];
      EXPECT_EQ(ours.offset.value, theirs[i].offset) << path;
      EXPECT_EQ(ours.address.value, theirs[i].address) << path;
      EXPECT_EQ(ours.file_size, theirs[i].file_size) << path;
      EXPECT_EQ(ours.memory_size, theirs[i].memory_size) << path;
      EXPECT_EQ(FlagsOf(ours), theirs[i].flags) << path;
    }
  }
}

TEST(Headers, BuildIdEntryAndInterpreterAreThoseThatReadelfPrints) {
  for (const std::string& path : AllFiles()) {
    auto file = MustOpen(path);
    std::string build_id, interpreter;
    uint64_t entry = 0;
    for (const std::string& line : RunLines("readelf -hnlW " + path + " 2>/dev/null")) {
      std::istringstream fields(line);
      std::string first, second, third, fourth, fifth;
      fields >> first >> second >> third >> fourth >> fifth;
      size_t at = line.find("Build ID: ");
      if (at != std::string::npos) build_id = line.substr(at + 10);
      if (first == "Entry") entry = std::stoull(fourth, nullptr, 0);
      if (first == "[Requesting") interpreter = fourth.substr(0, fourth.size() - 1);
    }
    EXPECT_EQ(file->identity().build_id, build_id) << path;
    EXPECT_EQ(file->entry().value, entry) << path;
    EXPECT_EQ(file->interpreter(), interpreter) << path;
  }
}

TEST(Headers, TypesOfPrograms) {
  EXPECT_TRUE(MustOpen(Fixture("pie"))->position_independent());
  EXPECT_TRUE(MustOpen(Fixture("static_pie"))->position_independent());
  EXPECT_FALSE(MustOpen(Fixture("no_pie"))->position_independent());
  EXPECT_FALSE(MustOpen(Fixture("static"))->position_independent());
  EXPECT_EQ(MustOpen(Fixture("static"))->interpreter(), "");
}

// The first instruction of each function, by objdump's own reading of the file.
TEST(Headers, BytesAtTheOffsetOfAFunctionAreThoseThatObjdumpShows) {
  for (const char* name : {"pie", "no_pie", "static", "no_separate_code", "lld", "mold"}) {
    std::string path = Fixture(name);
    if (Present({path, "/bin/sh"}).size() < 2) continue;
    auto file = MustOpen(path);
    size_t compared = 0;
    bool at_start = false;
    for (const std::string& line : RunLines("objdump -dw --section=.text " + path)) {
      size_t tab = line.find('\t');
      if (at_start && tab != std::string::npos) {
        uint64_t address = std::stoull(line, nullptr, 16);
        std::istringstream hex(line.substr(tab + 1, line.find('\t', tab + 1) - tab - 1));
        auto offset = file->ToOffset({address});
        ASSERT_TRUE(offset.has_value()) << line;
        EXPECT_TRUE(file->IsExecutable(*offset));
        EXPECT_EQ(file->ToLinkAddr(*offset)->value, address);
        for (uint8_t byte : file->Bytes(*offset, 1)) {
          unsigned theirs = 0;
          hex >> std::hex >> theirs;
          EXPECT_EQ(byte, theirs) << line;
        }
        ++compared;
      }
      at_start = line.ends_with(">:");
    }
    EXPECT_GT(compared, 10u) << path;
  }
}

TEST(Headers, OffsetsOutsideOfTheFileAreNowhere) {
  auto file = MustOpen(Fixture("pie"));
  EXPECT_FALSE(file->ToOffset({0xffffffffffffff00}).has_value());
  EXPECT_FALSE(file->ToLinkAddr({1u << 30}).has_value());
  EXPECT_FALSE(file->IsExecutable({1u << 30}));
  EXPECT_FALSE(file->IsExecutable({0}));
  EXPECT_TRUE(file->Bytes({1u << 30}, 16).empty());
  EXPECT_EQ(file->Bytes({0}, 4), (std::vector<uint8_t>{0x7f, 'E', 'L', 'F'}));
}

TEST(Headers, WhoNamesAScriptIsToldWhatToNameInstead) {
  auto hint = [](const std::string& text) {
    UniqueFd file(::memfd_create("script", MFD_CLOEXEC));
    EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    auto opened = File::Open("/proc/self/fd/" + std::to_string(file.get()));
    return opened.ok() ? "" : opened.error().hint;
  };
  EXPECT_NE(hint("#!/bin/sh\n").find("the program that runs it"), std::string::npos);
  EXPECT_NE(hint("/* GNU ld script */ GROUP ( a.so.1 )\n").find("libc.so.6"), std::string::npos);
  EXPECT_EQ(hint("#"), "name a program or a shared library");
}

TEST(Headers, WhatIsNoProgramIsNamed) {
  auto reason = [](const std::string& path) {
    auto file = File::Open(path);
    return file.ok() ? "" : file.error().reason;
  };
  EXPECT_EQ(reason("/etc/passwd"), "NOT_ELF");
  EXPECT_EQ(reason("/etc"), "NOT_ELF");
  EXPECT_EQ(reason("/dev/zero"), "NOT_ELF");
  auto missing = File::Open("/nonexistent/file");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace probed::elf
