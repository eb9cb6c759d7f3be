#include "elf/versions.h"

#include <string_view>
#include <unordered_map>

#include "elf/byte_reader.h"

namespace probed::elf {
namespace {

constexpr uint16_t kHiddenBit = 0x8000;  // set: name@VERSION, not the default name@@VERSION
constexpr size_t kMaxRecords = 1 << 15;  // indices have 15 bits

using NamesByIndex = std::unordered_map<uint16_t, std::string_view>;

// The chains are linked by unsigned forward distances, so they end; the counter bounds them too.
void NameDefinitions(std::span<const uint8_t> bytes, std::span<const uint8_t> strings,
                     NamesByIndex* names) {
  size_t position = 0;
  for (size_t count = 0; count < kMaxRecords; ++count) {
    ByteReader reader(bytes, position);
    auto definition = reader.Take<Elf64_Verdef>();
    ByteReader detail(bytes, position + definition.vd_aux);
    auto first = detail.Take<Elf64_Verdaux>();
    if (!reader.ok() || !detail.ok()) return;
    // The base definition names the file, not a version.
    if ((definition.vd_flags & VER_FLG_BASE) == 0) {
      names->emplace(definition.vd_ndx & ~kHiddenBit, StringAt(strings, first.vda_name));
    }
    if (definition.vd_next == 0) return;
    position += definition.vd_next;
  }
}

void NameNeedsOfFile(std::span<const uint8_t> bytes, size_t position,
                     std::span<const uint8_t> strings, size_t* budget, NamesByIndex* names) {
  for (; *budget > 0; --*budget) {
    ByteReader reader(bytes, position);
    auto need = reader.Take<Elf64_Vernaux>();
    if (!reader.ok()) return;
    names->emplace(need.vna_other & ~kHiddenBit, StringAt(strings, need.vna_name));
    if (need.vna_next == 0) return;
    position += need.vna_next;
  }
}

void NameNeeds(std::span<const uint8_t> bytes, std::span<const uint8_t> strings,
               NamesByIndex* names) {
  size_t position = 0;
  size_t budget = kMaxRecords;
  for (; budget > 0; --budget) {
    ByteReader reader(bytes, position);
    auto file = reader.Take<Elf64_Verneed>();
    if (!reader.ok()) return;
    NameNeedsOfFile(bytes, position + file.vn_aux, strings, &budget, names);
    if (file.vn_next == 0 || budget == 0) return;
    position += file.vn_next;
  }
}

std::vector<uint8_t> ReadFirst(const Image& image, const Headers& headers, uint32_t type) {
  const Section* section = headers.FindSection(type);
  return section == nullptr ? std::vector<uint8_t>{} : ReadSection(image, *section);
}

}  // namespace

RawVersions ReadVersionSections(const Image& image, const Headers& headers) {
  return {.indices = ReadFirst(image, headers, SHT_GNU_versym),
          .definitions = ReadFirst(image, headers, SHT_GNU_verdef),
          .needs = ReadFirst(image, headers, SHT_GNU_verneed)};
}

std::vector<VersionName> NameVersions(const RawVersions& versions,
                                      std::span<const uint8_t> strings) {
  NamesByIndex names;
  NameDefinitions(versions.definitions, strings, &names);
  NameNeeds(versions.needs, strings, &names);
  std::vector<VersionName> result;
  ByteReader reader(versions.indices);
  while (reader.left() >= sizeof(uint16_t)) {
    auto index = reader.Take<uint16_t>();
    auto found = names.find(index & ~kHiddenBit);
    std::string_view name = found == names.end() ? std::string_view{} : found->second;
    result.push_back({.name = name, .is_default = (index & kHiddenBit) == 0});
  }
  return result;
}

}  // namespace probed::elf
