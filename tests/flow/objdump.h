#pragma once
// What objdump, a decoder that shares nothing with ours, reads in a file.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace probed::probe {

struct ObjdumpLine {
  uint64_t address = 0;
  std::string_view mnemonic;
  uint64_t target = 0;  // of a direct branch or call; 0: none
};

// False when objdump is not there or fails. Lines that it calls (bad) are left out.
bool Objdump(const std::string& path, const std::function<void(const ObjdumpLine&)>& sink);

}  // namespace probed::probe
