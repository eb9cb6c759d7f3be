#pragma once
// Where a process put a file: what its addresses differ by from the linker's.

#include "base/address.h"
#include "base/result.h"
#include "elf/file.h"
#include "elf/module_map.h"

namespace probed::elf {

// Run-time address minus link address, for any address of the file, also those of zeroed data that
// is in no mapping of it (_r_debug). Modulo 2^64; 0 for a program linked to fixed addresses.
// NOT_MAPPED when no mapping of the module fits the file's executable segments.
Result<uint64_t> LoadBias(const File& file, const Module& module);

inline RemoteAddr ToRemote(LinkAddr address, uint64_t bias) {
  return {address.value + bias};
}
inline LinkAddr ToLink(RemoteAddr address, uint64_t bias) {
  return {address.value - bias};
}

}  // namespace probed::elf
