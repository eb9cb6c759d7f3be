// Every rip-relative instruction of real libraries, copied: the copy must name the same address.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/arch/x86_64/disassembler.h"
#include "engine/arch/x86_64/relocate.h"
#include "tests/arch/hex.h"
#include "tests/arch/text_section.h"

namespace probed::arch {
namespace {

constexpr uint64_t kDistance = 512 << 20;

// The absolute address that the first memory operand with a rip base names.
uint64_t NamedAddress(std::span<const uint8_t> code, uint64_t address) {
  std::optional<Disassembly> disassembly = Disassemble(code);
  if (!disassembly.has_value()) return 0;
  for (const ZydisDecodedOperand& operand : disassembly->visible_operands()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    ZyanU64 named = 0;
    ZydisCalcAbsoluteAddress(&disassembly->instruction, &operand, address, &named);
    return named;
  }
  return 0;
}

bool CopyNamesTheSame(const Instruction& instruction, uint64_t address) {
  uint64_t copy_address = address + kDistance;
  Result<OutOfLineCopy> copy = BuildCopy(instruction, address, copy_address);
  if (!copy.ok()) return false;
  uint64_t skipped = instruction.is_call ? copy->instruction_length : 0;  // the push before a jump
  return NamedAddress(instruction.code(), address) ==
         NamedAddress(std::span(copy->code).subspan(skipped), copy_address + skipped);
}

TEST(LibraryCopyTest, CopiesNameTheSameAddresses) {
  size_t copies = 0;
  for (const TextSection& text : LibraryTexts()) {
    std::span<const uint8_t> rest = text.bytes;
    while (!rest.empty()) {
      uint64_t address = text.address + (text.bytes.size() - rest.size());
      Result<Instruction> instruction = Decode(rest, address);
      rest = rest.subspan(instruction.ok() ? instruction->length : 1);
      if (!instruction.ok() || !instruction->rip_relative) continue;
      // Tables that look like code may name places out of reach.
      if (NamedAddress(instruction->code(), address) - text.address > kDistance) continue;
      ++copies;
      EXPECT_TRUE(CopyNamesTheSame(*instruction, address)) << instruction->text;
    }
  }
  fmt::print("[   COUNT  ] {} rip-relative instructions copied\n", copies);
  EXPECT_GT(copies, 10'000u);
}

}  // namespace
}  // namespace probed::arch
