#pragma once
// The part of a file that one PT_LOAD maps. gABI, "Program Header".

#include <cstdint>

#include "base/address.h"

namespace probed::elf {

struct Segment {
  LinkAddr address;
  FileOffset offset;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  bool readable = false, writable = false, executable = false;

  bool HoldsInFile(LinkAddr a) const { return a >= address && a - address < file_size; }
  bool HoldsInFile(FileOffset o) const { return o >= offset && o - offset < file_size; }
};

}  // namespace probed::elf
