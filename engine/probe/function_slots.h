#pragma once
// The words of a file that the dynamic linker fills with addresses of functions (the GOT): x86-64
// psABI, "Relocation". Sizes and offsets are the file's word, so nothing is believed. Any thread.

#include <string>
#include <vector>

#include "base/address.h"
#include "elf/file.h"

namespace probed::probe {

// Slots for what an IFUNC's resolver answers in its own file: R_X86_64_IRELATIVE.
std::vector<LinkAddr> SlotsOfResolver(const elf::File& file, LinkAddr resolver);
// Slots for a function of that name, from whatever file: R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT.
std::vector<LinkAddr> SlotsOfImport(const elf::File& file, const std::string& name);

}  // namespace probed::probe
