// Lengths of every instruction in real libraries, according to both decoders and to objdump.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>

#include "engine/arch/x86_64/disassembler.h"
#include "engine/arch/x86_64/instruction.h"
#include "tests/arch/text_section.h"

namespace probed::arch {
namespace {

// What objdump is asked about: the middle of each library, where no tables are.
constexpr uint64_t kWindow = 128 << 10;
constexpr uint64_t kWarmUp = 1 << 10;

struct Agreement {
  size_t instructions = 0;
  size_t unknown_to_capstone = 0;
  size_t contradictions = 0;
};

void CompareDecoders(const TextSection& text, Agreement& agreement) {
  std::span<const uint8_t> rest = text.bytes;
  while (!rest.empty()) {
    uint8_t length = InstructionLength(rest);
    uint8_t other = length == 0 ? 0 : CapstoneLength(rest, text.address);
    if (length != 0) ++agreement.instructions;
    if (length != 0 && other == 0) ++agreement.unknown_to_capstone;
    if (length != 0 && other != 0 && length != other) {
      ++agreement.contradictions;
      Result<Instruction> instruction = Decode(rest, text.address);
      EXPECT_EQ(instruction->execution, Execution::kRefused) << instruction->text;
    }
    rest = rest.subspan(length == 0 ? 1 : length);
  }
}

TEST(DecoderAgreementTest, CapstoneAndZydisGiveTheSameLengths) {
  Agreement agreement;
  for (const TextSection& text : LibraryTexts())
    CompareDecoders(text, agreement);
  fmt::print("[   COUNT  ] {} instructions, {} unknown to Capstone, {} contradictions (refused)\n",
             agreement.instructions, agreement.unknown_to_capstone, agreement.contradictions);
  EXPECT_GT(agreement.instructions, 100'000u);
  // libcrypto keeps tables in .text; there, and only there, the decoders may differ.
  EXPECT_LT(agreement.contradictions, 100u);
}

// Address of each instruction -> its length.
std::map<uint64_t, size_t> ObjdumpLengths(const TextSection& text) {
  std::map<uint64_t, size_t> lengths;
  uint64_t start = text.address + text.bytes.size() / 2;
  std::string command = fmt::format("objdump -d -w --start-address={} --stop-address={} {} 2>&1",
                                    start, start + kWindow, text.path);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  char line[1024];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    unsigned long address = 0;
    int at = 0;
    if (std::sscanf(line, " %lx:\t%n", &address, &at) != 1 || at == 0) continue;
    std::string_view bytes(line + at);
    bytes = bytes.substr(0, bytes.find('\t'));
    size_t length = (bytes.find_last_not_of(' ') + 2) / 3;
    // The window may begin inside an instruction, and its end cuts the last one.
    if (address < start + kWarmUp || address + 16 > start + kWindow) continue;
    bool is_bad = std::string_view(line).find("(bad)") != std::string_view::npos;
    // objdump joins fwait with the x87 instruction behind it.
    if (!is_bad && !bytes.starts_with("9b")) lengths[address] = length;
  }
  return lengths;
}

TEST(DecoderAgreementTest, ObjdumpGivesTheSameLengths) {
  size_t instructions = 0;
  for (const TextSection& text : LibraryTexts()) {
    for (const auto& [address, length] : ObjdumpLengths(text)) {
      uint64_t offset = address - text.address;
      if (offset + 16 > text.bytes.size()) continue;
      ++instructions;
      EXPECT_EQ(InstructionLength(std::span(text.bytes).subspan(offset)), length)
          << text.path << " at " << std::hex << address;
    }
  }
  if (instructions == 0) GTEST_SKIP() << "objdump (binutils) is not installed";
  fmt::print("[   COUNT  ] {} instructions as objdump has them\n", instructions);
}

}  // namespace
}  // namespace probed::arch
