#include "elf/dynamic_tags.h"

#include <algorithm>

#include "elf/byte_reader.h"

namespace probed::elf {
namespace {

constexpr uint64_t kMaxDynamicBytes = 1 << 20;
constexpr uint64_t kMaxSymbols = 16 << 20;

}  // namespace

DynamicTags::DynamicTags(const Handle& elf, const Headers& headers,
                         std::span<const Segment> segments)
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

uint64_t DynamicTags::Tag(int64_t tag) const {
  auto found = tags_.find(tag);
  return found == tags_.end() ? 0 : found->second;
}

Elf_Data* DynamicTags::TableAt(int64_t tag, uint64_t size, Elf_Type type) const {
  FileRange range = RangeAt(segments_, {Tag(tag)}, size);
  bool is_there = Tag(tag) != 0 && range.size != 0;
  return is_there ? elf_.Data(range.offset, range.size, type) : nullptr;
}

uint64_t DynamicTags::CountSymbols() const {
  ByteReader hash(BytesOf(TableAt(DT_HASH, 8, ELF_T_WORD)));
  hash.Skip(sizeof(uint32_t));
  uint64_t chains = hash.Take<uint32_t>();
  return std::min(hash.ok() ? chains : CountByGnuHash(), kMaxSymbols);
}

// The highest bucket starts the last chain; its end is marked by the low bit.
uint64_t DynamicTags::CountByGnuHash() const {
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

}  // namespace probed::elf
