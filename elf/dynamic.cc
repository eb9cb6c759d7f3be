#include "elf/dynamic.h"

#include "elf/dynamic_tags.h"

namespace probed::elf {
namespace {

constexpr uint64_t kMaxVersionBytes = 16 << 20;

}  // namespace

SymbolTable ReadDynamicTable(const Handle& elf, const Headers& headers,
                             std::span<const Segment> segments) {
  DynamicTags reader(elf, headers, segments);
  uint64_t count = reader.CountSymbols();
  return {.symbols = reader.TableAt(DT_SYMTAB, count * sizeof(Elf64_Sym), ELF_T_SYM),
          .strings = reader.TableAt(DT_STRTAB, reader.Tag(DT_STRSZ), ELF_T_BYTE),
          .versions = reader.TableAt(DT_VERSYM, count * sizeof(uint16_t), ELF_T_HALF),
          .definitions = reader.TableAt(DT_VERDEF, kMaxVersionBytes, ELF_T_VDEF),
          .needs = reader.TableAt(DT_VERNEED, kMaxVersionBytes, ELF_T_VNEED)};
}

}  // namespace probed::elf
