#pragma once
// Instruction forms: one example of each distinct opcode, prefix, width and kind of operand.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace probed::arch {

// Form name -> one instruction of that form.
using Forms = std::map<std::string, std::vector<uint8_t>>;

// "mov legacy map0 op8b w64 mem" and so on; empty when the bytes are no instruction.
std::string FormOf(std::span<const uint8_t> code);

// Every form in a linear decode of `text`.
void CollectForms(std::span<const uint8_t> text, Forms& forms);

// The encoding space itself: each opcode of each map, with prefixes, VEX and EVEX.
void EnumerateLegacyForms(Forms& forms);
void EnumerateVexForms(Forms& forms);
void EnumerateEvexForms(Forms& forms);

}  // namespace probed::arch
