#include "elf/symbol.h"

namespace probed::elf {

const char* SymbolSourceName(SymbolSource source) {
  switch (source) {
    case SymbolSource::kSymtab:
      return ".symtab";
    case SymbolSource::kDynsym:
      return ".dynsym";
    case SymbolSource::kDebugData:
      return ".gnu_debugdata";
    case SymbolSource::kDebugFile:
      return "debug file";
    case SymbolSource::kGoTable:
      return ".gopclntab";
  }
  return "";
}

}  // namespace probed::elf
