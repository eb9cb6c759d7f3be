#include "engine/arch/x86_64/disassembler.h"

#include <capstone/capstone.h>

namespace probed::arch {
namespace {

struct Zydis {
  ZydisDecoder decoder;
  ZydisFormatter formatter;

  Zydis() {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                              ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING,
                              ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
  }
};

const Zydis& SharedZydis() {
  static const Zydis zydis;
  return zydis;
}

// One handle a thread, because a handle is not safe to share between threads.
class Capstone {
 public:
  Capstone() {
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle_) != CS_ERR_OK) return;
    instruction_ = cs_malloc(handle_);
  }
  ~Capstone() {
    if (instruction_ != nullptr) cs_free(instruction_, 1);
    if (handle_ != 0) cs_close(&handle_);
  }
  Capstone(const Capstone&) = delete;
  Capstone& operator=(const Capstone&) = delete;

  uint8_t Length(std::span<const uint8_t> code, uint64_t address) {
    if (instruction_ == nullptr) return 0;
    const uint8_t* bytes = code.data();
    size_t size = code.size();
    if (!cs_disasm_iter(handle_, &bytes, &size, &address, instruction_)) return 0;
    return static_cast<uint8_t>(instruction_->size);
  }

 private:
  csh handle_ = 0;
  cs_insn* instruction_ = nullptr;
};

}  // namespace

std::optional<Disassembly> Disassemble(std::span<const uint8_t> code) {
  Disassembly result;
  ZyanStatus status = ZydisDecoderDecodeFull(&SharedZydis().decoder, code.data(), code.size(),
                                             &result.instruction, result.operands.data());
  if (!ZYAN_SUCCESS(status)) return std::nullopt;
  return result;
}

bool DisassembleLayout(std::span<const uint8_t> code, ZydisDecodedInstruction& instruction) {
  return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&SharedZydis().decoder, nullptr, code.data(),
                                                    code.size(), &instruction));
}

uint8_t InstructionLength(std::span<const uint8_t> code) {
  ZydisDecodedInstruction instruction;
  return DisassembleLayout(code, instruction) ? instruction.length : 0;
}

uint8_t CapstoneLength(std::span<const uint8_t> code, uint64_t address) {
  static thread_local Capstone capstone;
  return capstone.Length(code, address);
}

std::string Format(const Disassembly& disassembly, uint64_t address) {
  char buffer[128];
  ZyanStatus status = ZydisFormatterFormatInstruction(
      &SharedZydis().formatter, &disassembly.instruction, disassembly.operands.data(),
      disassembly.instruction.operand_count_visible, buffer, sizeof buffer, address, nullptr);
  return ZYAN_SUCCESS(status) ? buffer : "(unprintable)";
}

}  // namespace probed::arch
