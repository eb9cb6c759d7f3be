#pragma once
// GNU symbol versions. LSB Core, "Symbol Versioning".

#include <span>
#include <vector>

#include "elf/headers.h"
#include "elf/symbol_table.h"

namespace probed::elf {

struct RawVersions {
  std::vector<uint8_t> indices;      // .gnu.version, one uint16_t for each symbol
  std::vector<uint8_t> definitions;  // .gnu.version_d
  std::vector<uint8_t> needs;        // .gnu.version_r
};

RawVersions ReadVersionSections(const Image& image, const Headers& headers);

// One for each symbol of the table; the names point into `strings`.
std::vector<VersionName> NameVersions(const RawVersions& versions,
                                      std::span<const uint8_t> strings);

}  // namespace probed::elf
