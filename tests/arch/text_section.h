#pragma once
// The machine code of real libraries, as test material.

#include <cstdint>
#include <string>
#include <vector>

namespace probed::arch {

struct TextSection {
  std::string path;
  uint64_t address = 0;  // link-time address of the first byte
  std::vector<uint8_t> bytes;
};

// .text of libc, libcrypto, libstdc++ and python3.11, as far as this system has them.
std::vector<TextSection> LibraryTexts();

}  // namespace probed::arch
