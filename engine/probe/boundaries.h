#pragma once
// Where instructions begin, from a linear decode of the function that holds them. Remembers the
// functions it has decoded; lives for one request. Not thread-safe.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "elf/file.h"

namespace probed::probe {

enum class Boundary : uint8_t {
  kYes,
  kInside,   // in the middle of an instruction
  kUnknown,  // no function bounds, or undecodable bytes before it
};

class Boundaries {
 public:
  Boundary At(const elf::File& file, LinkAddr address);

 private:
  struct Decoded {
    std::vector<uint64_t> starts;  // ascending
    uint64_t end = 0;              // decoded up to here, or not decodable from here on
  };
  static void Extend(const elf::File& file, const elf::FunctionBounds& function, LinkAddr address,
                     Decoded& decoded);

  std::map<std::pair<const elf::File*, uint64_t>, Decoded> functions_;
};

}  // namespace probed::probe
