#pragma once
// A name with an address, as symbol tables give it, and what is known of a function's extent.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/address.h"

namespace probed::elf {

enum class SymbolKind : uint8_t {
  kFunction,
  kObject,
  kLabel,  // untyped, as hand-written assembly leaves them
};

enum class SymbolSource : uint8_t { kSymtab, kDynsym, kDebugData, kDebugFile, kGoTable };

struct Symbol {
  std::string name;
  std::string version;  // "GLIBC_2.14"; default_version tells @@ from @
  bool default_version = true;
  LinkAddr address;
  uint64_t size = 0;  // 0 = unknown (hand-written assembly)
  bool ifunc = false;
  bool defined = true;  // false: an import
  bool global = false;  // STB_GLOBAL, STB_WEAK or STB_GNU_UNIQUE
  SymbolKind kind = SymbolKind::kFunction;
  SymbolSource source = SymbolSource::kSymtab;
};

struct FunctionBounds {
  LinkAddr start;
  uint64_t size = 0;
  std::string symbol;  // may be empty (from an FDE)
};

// What one table says of a function's extent.
struct SizeClaim {
  std::string_view table;  // as SymbolSourceName has it, or ".eh_frame"
  uint64_t size = 0;
  bool operator==(const SizeClaim&) const = default;
};

// ".symtab", ".dynsym", ".gnu_debugdata", "debug file" or ".gopclntab".
const char* SymbolSourceName(SymbolSource source);

}  // namespace probed::elf
