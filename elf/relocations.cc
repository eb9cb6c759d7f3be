#include "elf/relocations.h"

#include <optional>

#include "elf/dynamic_tags.h"
#include "elf/handle.h"

namespace probed::elf {
namespace {

std::optional<LinkAddr> Meant(const GElf_Rela& relocation, Elf_Data* symbols) {
  uint64_t addend = static_cast<uint64_t>(relocation.r_addend);
  switch (GELF_R_TYPE(relocation.r_info)) {
    case R_X86_64_RELATIVE:
    case R_X86_64_IRELATIVE:
      return LinkAddr{addend};
    case R_X86_64_64: {
      GElf_Sym symbol;
      int index = static_cast<int>(GELF_R_SYM(relocation.r_info));
      bool is_here =
          ::gelf_getsym(symbols, index, &symbol) != nullptr && symbol.st_shndx != SHN_UNDEF;
      return is_here ? std::optional(LinkAddr{symbol.st_value + addend}) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<LinkAddr> ReadRelocatedAddresses(const Image& image, const Headers& headers,
                                             std::span<const Segment> segments) {
  Handle elf(image);
  DynamicTags tags(elf, headers, segments);
  Elf_Data* symbols = tags.TableAt(DT_SYMTAB, tags.CountSymbols() * sizeof(Elf64_Sym), ELF_T_SYM);
  Elf_Data* table = tags.TableAt(DT_RELA, tags.Tag(DT_RELASZ), ELF_T_RELA);
  std::vector<LinkAddr> addresses;
  GElf_Rela relocation;
  for (int i = 0; ::gelf_getrela(table, i, &relocation) != nullptr; ++i) {
    if (auto address = Meant(relocation, symbols)) addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace probed::elf
