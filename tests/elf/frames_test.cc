#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>

#include "elf/file.h"
#include "elf/frame_index.h"
#include "tests/elf/oracle.h"

namespace probed::elf {
namespace {

using Range = std::pair<uint64_t, uint64_t>;

FrameIndex ReadFrames(const std::string& path) {
  auto image = Image::Open(path, "");
  EXPECT_TRUE(image.ok());
  auto headers = ReadHeaders(*image, path);
  EXPECT_TRUE(headers.ok());
  auto segments = ReadSegments(*headers, image->size(), path);
  EXPECT_TRUE(segments.ok());
  return FrameIndex::Read(*image, *headers, *segments);
}

// "... FDE cie=00000000 pc=START..END"
std::set<Range> ReadelfFrames(const std::string& path) {
  std::set<Range> ranges;
  for (const std::string& line : RunLines("readelf -W -wfN " + path + " 2>/dev/null")) {
    size_t at = line.find(" pc=");
    if (at == std::string::npos) continue;
    std::string range = line.substr(at + 4);
    uint64_t start = std::stoull(range, nullptr, 16);
    uint64_t end = std::stoull(range.substr(range.find("..") + 2), nullptr, 16);
    if (end > start) ranges.emplace(start, end);
  }
  return ranges;
}

TEST(Frames, AreThoseThatReadelfDumps) {
  size_t compared = 0;
  std::vector<std::string> files = SystemFiles();
  for (const char* name : {"pie", "static", "lld", "gold", "mold", "stripped"}) {
    files.push_back(Fixture(name));
  }
  for (const std::string& path : Present(files)) {
    std::set<Range> ours;
    FrameIndex frames = ReadFrames(path);
    for (const Frame& frame : frames.frames()) {
      ours.emplace(frame.start.value, frame.start.value + frame.size);
    }
    std::set<Range> theirs = ReadelfFrames(path);
    EXPECT_EQ(ours, theirs) << path;
    compared += theirs.size();
  }
  EXPECT_GT(compared, 20000u);
}

TEST(Frames, AgreeWithTheSizesOfCompiledFunctions) {
  for (const std::string& path : Present({"/usr/bin/bash", "/usr/bin/python3.11"})) {
    auto file = File::Open(path);
    ASSERT_TRUE(file.ok());
    FrameIndex frames = ReadFrames(path);
    size_t same = 0, all = 0;
    for (const Symbol& symbol : (*file)->functions()) {
      if (symbol.size == 0) continue;
      ++all;
      auto frame = frames.Around(symbol.address);
      same += frame && frame->start == symbol.address && frame->size == symbol.size ? 1 : 0;
    }
    // The rest are functions whose compiler-made cold part is in the symbol's size, or
    // hand-written.
    EXPECT_GE(same * 100, all * 98) << path << ": " << same << " of " << all;
  }
}

struct Row {
  uint64_t address = 0;
  std::string frame, return_address;  // "rsp+8", "c-8"
};

// The rows of all FDEs: "LOC CFA rbx rbp ra", then addresses and places.
std::vector<Row> ReadelfRows(const std::string& path) {
  std::vector<Row> rows;
  bool in_fde = false;
  for (const std::string& line : RunLines("readelf -W -wFN " + path + " 2>/dev/null || true")) {
    std::istringstream words(line);
    std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
    if (fields.size() < 3) continue;
    if (line.find(" CIE ") != std::string::npos || line.find(" FDE ") != std::string::npos) {
      in_fde = line.find(" FDE ") != std::string::npos;
    } else if (in_fde && fields[0] != "LOC" && fields[1] != "ZERO") {
      rows.push_back({std::stoull(fields[0], nullptr, 16), fields[1], fields.back()});
    }
  }
  return rows;
}

ReturnAddress ExpectedPlace(const Row& row) {
  if (row.return_address[0] != 'c') return ReturnAddress::kElsewhere;  // "u": there is none
  if (row.frame.starts_with("rbp")) return ReturnAddress::kElsewhere;
  if (!row.frame.starts_with("rsp")) return ReturnAddress::kUnknown;
  return std::stol(row.frame.substr(3)) + std::stol(row.return_address.substr(1)) == 0
             ? ReturnAddress::kOnTop
             : ReturnAddress::kElsewhere;
}

TEST(Frames, SayWhereReturnAddressesAreAsReadelfDoes) {
  size_t compared = 0;
  for (const std::string& path : Present({"/usr/bin/bash", Fixture("static"), Fixture("lld"),
                                          "/usr/lib/x86_64-linux-gnu/libc.so.6",
                                          "/usr/lib/x86_64-linux-gnu/libgcc_s.so.1"})) {
    auto file = File::Open(path);
    ASSERT_TRUE(file.ok());
    for (const Row& row : ReadelfRows(path)) {
      EXPECT_EQ((*file)->ReturnAddressAt({row.address}), ExpectedPlace(row))
          << path << " " << std::hex << row.address << " " << row.frame << " "
          << row.return_address;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20000u);
}

TEST(Frames, AProgramIsNotCalled) {
  auto file = File::Open("/usr/bin/bash");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->ReturnAddressAt((*file)->entry()), ReturnAddress::kElsewhere);
  auto symbol = (*file)->FindFunction("main");
  ASSERT_TRUE(symbol.ok());
  EXPECT_EQ((*file)->ReturnAddressAt(symbol->address), ReturnAddress::kOnTop);
}

TEST(Frames, GiveTheBoundsOfFunctionsThatWereStripped) {
  auto whole = File::Open(Fixture("pie"));
  auto stripped = File::Open(Fixture("stripped"));
  ASSERT_TRUE(whole.ok() && stripped.ok());
  for (const char* name : {"main", "shapes::Circle::Grow", "TwinOfOther", "fixture_plain"}) {
    auto symbol = (*whole)->FindFunction(name);
    ASSERT_TRUE(symbol.ok()) << symbol.error().ToString();
    EXPECT_FALSE((*stripped)->FindFunction(name).ok());
    auto bounds = (*stripped)->FunctionAt(symbol->address + symbol->size / 2);
    ASSERT_TRUE(bounds.has_value()) << name;
    EXPECT_EQ(bounds->start, symbol->address) << name;
    EXPECT_EQ(bounds->size, symbol->size) << name;
    EXPECT_EQ(bounds->symbol, "") << name;
  }
}

TEST(Frames, OfAStaticStrippedProgramAreFound) {
  std::string path = Present({"/usr/bin/busybox", Fixture("static")}).front();
  auto file = File::Open(path);
  ASSERT_TRUE(file.ok());
  auto frames = ReadelfFrames(path);
  ASSERT_GT(frames.size(), 100u);
  for (auto [start, end] : frames) {
    auto bounds = (*file)->FunctionAt({start + (end - start) / 2});
    ASSERT_TRUE(bounds.has_value()) << std::hex << start;
  }
}

TEST(FunctionAt, EveryByteOfAFunctionBelongsToIt) {
  auto file = File::Open("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
  ASSERT_TRUE(file.ok());
  for (const Symbol& symbol : (*file)->functions()) {
    if (symbol.size == 0) continue;
    for (uint64_t at : {uint64_t{0}, symbol.size / 2, symbol.size - 1}) {
      auto bounds = (*file)->FunctionAt(symbol.address + at);
      ASSERT_TRUE(bounds.has_value()) << symbol.name;
      uint64_t address = symbol.address.value + at;
      EXPECT_LE(bounds->start.value, address) << symbol.name;
      EXPECT_GT(bounds->start.value + bounds->size, address) << symbol.name;
    }
    EXPECT_EQ((*file)->FunctionAt(symbol.address)->start, symbol.address) << symbol.name;
  }
}

TEST(FunctionAt, AnUnsizedFunctionEndsWhereSomethingElseStarts) {
  auto file = File::Open(Fixture("pie"));
  ASSERT_TRUE(file.ok());
  auto unsized = (*file)->FindFunction("fixture_unsized");
  auto label = (*file)->FindFunction("fixture_label");
  ASSERT_TRUE(unsized.ok() && label.ok());
  EXPECT_EQ(unsized->size, 0u);
  EXPECT_EQ(label->address - unsized->address, 3u);
  auto bounds = (*file)->FunctionAt(unsized->address + 1);
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->start, unsized->address);
  EXPECT_EQ(bounds->symbol, "fixture_unsized");
  EXPECT_GE(bounds->size, 3u);
  EXPECT_LE(bounds->size, 32u) << "must end at the next function, alignment included";
}

TEST(FunctionAt, InitEndsWithItsSection) {
  auto file = File::Open(Fixture("pie"));
  ASSERT_TRUE(file.ok());
  auto init = (*file)->FindFunction("_init");
  ASSERT_TRUE(init.ok()) << init.error().ToString();
  for (const std::string& line : RunLines("readelf -SW " + Fixture("pie") + " | grep ' .init '")) {
    std::istringstream fields(line.substr(line.find("PROGBITS")));
    std::string type, address, offset, size;
    fields >> type >> address >> offset >> size;
    EXPECT_EQ((*file)->FunctionAt(init->address)->size, std::stoull(size, nullptr, 16));
  }
}

}  // namespace
}  // namespace probed::elf
