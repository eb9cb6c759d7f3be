#include "elf/dynamic.h"

#include <algorithm>
#include <map>

#include "elf/byte_reader.h"

namespace probed::elf {
namespace {

constexpr uint64_t kMaxDynamicBytes = 1 << 20;
constexpr uint64_t kMaxSymbols = 16 << 20;
constexpr uint64_t kMaxVersionBytes = 16 << 20;

class DynamicReader {
 public:
  DynamicReader(const Handle& elf, const Headers& headers, std::span<const Segment> segments)
      : elf_(elf), segments_(segments) {
    const Elf64_Phdr* dynamic = headers.FindProgramHeader(PT_DYNAMIC);
    if (dynamic == nullptr) return;
    uint64_t size = std::min(dynamic->p_filesz, kMaxDynamicBytes);
    Elf_Data* data = elf.Data(dynamic->p_offset, size, ELF_T_DYN);
    Elf64_Dyn entry;
    for (int i = 0; ::gelf_getdyn(data, i, &entry) != nullptr && entry.d_tag != DT_NULL; ++i) {
      tags_.emplace(entry.d_tag, entry.d_un.d_val);
    }
  }

  uint64_t Tag(int64_t tag) const {
    auto found = tags_.find(tag);
    return found == tags_.end() ? 0 : found->second;
  }

  Elf_Data* TableAt(int64_t tag, uint64_t size, Elf_Type type) const {
    FileRange range = RangeAt(segments_, {Tag(tag)}, size);
    bool is_there = Tag(tag) != 0 && range.size != 0;
    return is_there ? elf_.Data(range.offset, range.size, type) : nullptr;
  }

  // Nothing states the number of dynamic symbols; the hash tables imply it.
  uint64_t CountSymbols() const {
    ByteReader hash(BytesOf(TableAt(DT_HASH, 8, ELF_T_WORD)));
    hash.Skip(sizeof(uint32_t));
    uint64_t chains = hash.Take<uint32_t>();
    return std::min(hash.ok() ? chains : CountByGnuHash(), kMaxSymbols);
  }

 private:
  // The highest bucket starts the last chain; its end is marked by the low bit.
  uint64_t CountByGnuHash() const {
    uint64_t most = kMaxSymbols * sizeof(uint32_t);
    ByteReader reader(BytesOf(TableAt(DT_GNU_HASH, most, ELF_T_BYTE)));
    auto buckets = reader.Take<uint32_t>();
    auto first_hashed = reader.Take<uint32_t>();
    auto bloom_words = reader.Take<uint32_t>();
    reader.Skip(sizeof(uint32_t) + uint64_t{bloom_words} * sizeof(uint64_t));
    uint32_t last = 0;
    for (uint32_t i = 0; i < buckets && reader.ok(); ++i) {
      last = std::max(last, reader.Take<uint32_t>());
    }
    if (!reader.ok()) return 0;
    if (last < first_hashed) return first_hashed;
    reader.Skip(uint64_t{last - first_hashed} * sizeof(uint32_t));
    while (reader.ok() && (reader.Take<uint32_t>() & 1) == 0)
      ++last;
    return uint64_t{last} + 1;
  }

  const Handle& elf_;
  std::span<const Segment> segments_;
  std::map<int64_t, uint64_t> tags_;
};

}  // namespace

SymbolTable ReadDynamicTable(const Handle& elf, const Headers& headers,
                             std::span<const Segment> segments) {
  DynamicReader reader(elf, headers, segments);
  uint64_t count = reader.CountSymbols();
  return {.symbols = reader.TableAt(DT_SYMTAB, count * sizeof(Elf64_Sym), ELF_T_SYM),
          .strings = reader.TableAt(DT_STRTAB, reader.Tag(DT_STRSZ), ELF_T_BYTE),
          .versions = reader.TableAt(DT_VERSYM, count * sizeof(uint16_t), ELF_T_HALF),
          .definitions = reader.TableAt(DT_VERDEF, kMaxVersionBytes, ELF_T_VDEF),
          .needs = reader.TableAt(DT_VERNEED, kMaxVersionBytes, ELF_T_VNEED)};
}

}  // namespace probed::elf
