#include "tests/arch/forms.h"

#include <fmt/format.h>

#include "engine/arch/x86_64/disassembler.h"

namespace probed::arch {
namespace {

constexpr uint64_t kPrefixes =
    ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE |
    ZYDIS_ATTRIB_HAS_BND | ZYDIS_ATTRIB_HAS_NOTRACK | ZYDIS_ATTRIB_HAS_SEGMENT |
    ZYDIS_ATTRIB_HAS_OPERANDSIZE | ZYDIS_ATTRIB_HAS_ADDRESSSIZE;

std::string OperandKind(const ZydisDecodedInstruction& instruction) {
  const auto& raw = instruction.raw;
  if ((instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM) == 0) return "none";
  if (raw.modrm.mod == 3) return "reg";
  if (raw.modrm.mod == 0 && raw.modrm.rm == 5) return "rip";
  if (raw.modrm.rm != 4) return fmt::format("base+{}", raw.disp.size);
  const char* index = raw.sib.index == 4 ? "" : "+index";
  const char* base = raw.sib.base == 4 ? "rsp" : "sib";
  if (raw.sib.base == 5 && raw.modrm.mod == 0) base = "absolute";
  return fmt::format("{}{}+{}", base, index, raw.disp.size);
}

void AddForm(std::span<const uint8_t> code, Forms& forms) {
  uint8_t length = InstructionLength(code);
  if (length == 0) return;
  std::string form = FormOf(code.first(length));
  if (!form.empty()) forms.try_emplace(form, code.begin(), code.begin() + length);
}

// Some ModRM with what follows: registers, (%rbx), 8(%rsp), 16(%rip), (%rsi,%rdi,4).
constexpr uint8_t kTails[][8] = {
    {0xc1, 0x02, 0x11, 0x11, 0x11, 0x11, 0x00, 0x00},
    {0x03, 0x02, 0x11, 0x11, 0x11, 0x11, 0x00, 0x00},
    {0x44, 0x24, 0x08, 0x02, 0x11, 0x11, 0x11, 0x00},
    {0x05, 0x10, 0x00, 0x00, 0x00, 0x02, 0x11, 0x11},
    {0x04, 0xbe, 0x02, 0x11, 0x11, 0x11, 0x11, 0x00},
};

// Every tail with every value of the reg field, which selects the instruction in a group.
void AddWithTails(std::vector<uint8_t> head, int first_reg, int last_reg, Forms& forms) {
  size_t size = head.size();
  for (const auto& tail : kTails) {
    for (int reg = first_reg; reg <= last_reg; ++reg) {
      head.resize(size);
      head.insert(head.end(), std::begin(tail), std::end(tail));
      head[size] = static_cast<uint8_t>(head[size] | reg << 3);
      AddForm(std::span(head).first(std::min<size_t>(head.size(), 15)), forms);
    }
  }
}

void AddEvexOpcodes(uint8_t map, uint8_t third, uint8_t fourth, Forms& forms) {
  for (int opcode = 0; opcode < 256; ++opcode) {
    bool group = (map == 1 && opcode >= 0x71 && opcode <= 0x73) ||
                 (map == 2 && (opcode == 0xc6 || opcode == 0xc7));
    AddWithTails(
        {0x62, static_cast<uint8_t>(0xf0 | map), third, fourth, static_cast<uint8_t>(opcode)},
        group ? 0 : 1, group ? 7 : 1, forms);
  }
}

}  // namespace

std::string FormOf(std::span<const uint8_t> code) {
  std::optional<Disassembly> disassembly = Disassemble(code);
  if (!disassembly.has_value()) return {};
  const ZydisDecodedInstruction& instruction = disassembly->instruction;
  return fmt::format("{} enc{} map{} op{:02x} pre{:x} w{} a{} v{} m{}.{} b{} r{} {}",
                     ZydisMnemonicGetString(instruction.mnemonic), int{instruction.encoding},
                     int{instruction.opcode_map}, instruction.opcode,
                     instruction.attributes & kPrefixes, instruction.operand_width,
                     instruction.address_width, instruction.avx.vector_length,
                     int{instruction.avx.mask.mode},
                     instruction.avx.mask.reg != ZYDIS_REGISTER_NONE &&
                         instruction.avx.mask.reg != ZYDIS_REGISTER_K0,
                     instruction.avx.broadcast.is_static ? 0 : int{instruction.avx.broadcast.mode},
                     int{instruction.avx.rounding.mode}, OperandKind(instruction));
}

void CollectForms(std::span<const uint8_t> text, Forms& forms) {
  while (!text.empty()) {
    uint8_t length = InstructionLength(text);
    if (length != 0) AddForm(text.first(length), forms);
    text = text.subspan(length == 0 ? 1 : length);
  }
}

void EnumerateLegacyForms(Forms& forms) {
  const std::vector<uint8_t> prefixes[] = {
      {},     {0x66},       {0xf3},       {0xf2},       {0x48},       {0x66, 0x48}, {0xf3, 0x48},
      {0xf0}, {0xf0, 0x48}, {0x67},       {0x64},       {0x65},       {0x2e},       {0x3e},
      {0x41}, {0xf2, 0x48}, {0xf2, 0xf0}, {0xf3, 0x66}, {0xf3, 0x67},
  };
  const std::vector<uint8_t> maps[] = {{}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}};
  for (const auto& prefix : prefixes) {
    for (const auto& map : maps) {
      for (int opcode = 0; opcode < 256; ++opcode) {
        std::vector<uint8_t> head = prefix;
        head.insert(head.end(), map.begin(), map.end());
        head.push_back(static_cast<uint8_t>(opcode));
        AddWithTails(head, 0, 7, forms);
      }
    }
  }
}

void EnumerateVexForms(Forms& forms) {
  for (int map = 1; map <= 3; ++map) {
    for (int fields = 0; fields < 16; ++fields) {  // W, L, pp
      for (int vvvv : {0b1111, 0b1010}) {
        uint8_t third = static_cast<uint8_t>((fields & 8) << 4 | vvvv << 3 | (fields & 7));
        for (int opcode = 0; opcode < 256; ++opcode) {
          AddWithTails(
              {0xc4, static_cast<uint8_t>(0xe0 | map), third, static_cast<uint8_t>(opcode)}, 0, 7,
              forms);
        }
      }
    }
  }
}

void EnumerateEvexForms(Forms& forms) {
  constexpr uint8_t kMasks[] = {0x00, 0x01, 0x81};  // none, merging by k1, zeroing by k1
  for (uint8_t map : {1, 2, 3, 5, 6}) {
    for (int fields = 0; fields < 128; ++fields) {  // vvvv, b, L'L, W, pp
      int vvvv = (fields & 64) != 0 ? 0b1010 : 0b1111;
      auto third = static_cast<uint8_t>((fields & 4) << 5 | vvvv << 3 | 4 | (fields & 3));
      auto fourth = static_cast<uint8_t>((fields >> 3 & 7) << 4 | 8);
      for (uint8_t mask : kMasks) {
        AddEvexOpcodes(map, third, static_cast<uint8_t>(fourth | mask), forms);
      }
    }
  }
}

}  // namespace probed::arch
