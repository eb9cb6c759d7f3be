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
  DynamicReader(const Image& image, std::span<const Segment> segments)
      : image_(image), segments_(segments) {}

  void ReadTags(const Headers& headers) {
    const Elf64_Phdr* dynamic = headers.FindProgramHeader(PT_DYNAMIC);
    if (dynamic == nullptr) return;
    auto bytes = image_.Read(dynamic->p_offset, std::min(dynamic->p_filesz, kMaxDynamicBytes));
    ByteReader reader(bytes);
    while (reader.left() >= sizeof(Elf64_Dyn)) {
      auto entry = reader.Take<Elf64_Dyn>();
      if (entry.d_tag == DT_NULL) return;
      tags_.emplace(entry.d_tag, entry.d_un.d_val);
    }
  }

  uint64_t Tag(int64_t tag) const {
    auto found = tags_.find(tag);
    return found == tags_.end() ? 0 : found->second;
  }

  std::vector<uint8_t> TableAt(int64_t tag, uint64_t size) const {
    uint64_t address = Tag(tag);
    return address == 0 ? std::vector<uint8_t>{} : ReadAt(image_, segments_, {address}, size);
  }

  // Nothing states the number of dynamic symbols; the hash tables imply it.
  uint64_t CountSymbols() const {
    std::vector<uint8_t> hash = TableAt(DT_HASH, 8);
    if (hash.size() == 8) {
      ByteReader reader(hash, 4);
      return std::min<uint64_t>(reader.Take<uint32_t>(), kMaxSymbols);
    }
    return CountByGnuHash();
  }

 private:
  // The highest bucket starts the last chain; its end is marked by the low bit.
  uint64_t CountByGnuHash() const {
    std::vector<uint8_t> hash = TableAt(DT_GNU_HASH, kMaxSymbols * sizeof(uint32_t));
    ByteReader reader(hash);
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
    return std::min(uint64_t{last} + 1, kMaxSymbols);
  }

  const Image& image_;
  std::span<const Segment> segments_;
  std::map<int64_t, uint64_t> tags_;
};

}  // namespace

DynamicTables ReadDynamicTables(const Image& image, const Headers& headers,
                                std::span<const Segment> segments) {
  DynamicReader reader(image, segments);
  reader.ReadTags(headers);
  uint64_t count = reader.CountSymbols();
  DynamicTables tables;
  tables.symbols.entries = reader.TableAt(DT_SYMTAB, count * sizeof(Elf64_Sym));
  tables.symbols.strings = reader.TableAt(DT_STRTAB, reader.Tag(DT_STRSZ));
  tables.versions.indices = reader.TableAt(DT_VERSYM, count * sizeof(uint16_t));
  tables.versions.definitions = reader.TableAt(DT_VERDEF, kMaxVersionBytes);
  tables.versions.needs = reader.TableAt(DT_VERNEED, kMaxVersionBytes);
  return tables;
}

}  // namespace probed::elf
