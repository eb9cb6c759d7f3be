#include <algorithm>

#include "engine/arch/x86_64/classify.h"
#include "engine/arch/x86_64/disassembler.h"
#include "engine/arch/x86_64/instruction.h"

namespace probed::arch {
namespace {

std::string HexBytes(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Error Undecodable(std::span<const uint8_t> code) {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "INSTRUCTION_UNDECODABLE",
          .message = "the bytes are no instruction: " + HexBytes(code),
          .hint = "check that the offset is the start of an instruction (objdump -d)",
          .metadata = {{"bytes", HexBytes(code)}}};
}

}  // namespace

Result<Instruction> Decode(std::span<const uint8_t> code, uint64_t address) {
  code = code.first(std::min(code.size(), sizeof(Instruction::bytes)));
  // Capstone alone is not enough: it accepts byte strings that processors reject.
  std::optional<Disassembly> disassembly = Disassemble(code);
  if (!disassembly.has_value()) return Undecodable(code);
  Instruction instruction;
  instruction.length = disassembly->instruction.length;
  std::copy_n(code.begin(), instruction.length, instruction.bytes.begin());
  instruction.text = Format(*disassembly, address);
  Classify(*disassembly, address, CapstoneLength(code, address), instruction);
  return instruction;
}

}  // namespace probed::arch
