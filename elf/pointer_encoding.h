#pragma once
// The DW_EH_PE_* encodings of pointers in unwind tables. LSB Core, "DWARF Exception Header
// Encoding".

#include <cstdint>
#include <optional>

#include "base/address.h"
#include "elf/byte_reader.h"

namespace probed::elf {

// What relative pointers are relative to.
struct PointerBase {
  LinkAddr section;  // where the reader's first byte is linked
  LinkAddr data;     // DW_EH_PE_datarel
};

// Nothing when the encoding is one that compilers do not use for code, or the bytes run out.
std::optional<uint64_t> TakePointer(ByteReader* reader, uint8_t encoding, const PointerBase& base);

// The value alone, as lengths are stored.
std::optional<uint64_t> TakeEncodedValue(ByteReader* reader, uint8_t encoding);

}  // namespace probed::elf
