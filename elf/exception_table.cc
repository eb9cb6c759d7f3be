#include "elf/exception_table.h"

#include <algorithm>

#include "elf/byte_reader.h"
#include "elf/pointer_encoding.h"

namespace probed::elf {
namespace {

constexpr uint8_t kOmitted = 0xff;  // DW_EH_PE_omit
constexpr size_t kMaxCallSites = 1 << 20;

}  // namespace

std::vector<LinkAddr> ReadLandingPads(std::span<const uint8_t> table, LinkAddr address,
                                      LinkAddr function) {
  ByteReader reader(table);
  PointerBase base{.section = address, .data = {}};
  uint64_t start = function.value;
  if (auto encoding = reader.Take<uint8_t>(); encoding != kOmitted) {
    auto stated = TakePointer(&reader, encoding, base);
    if (!stated) return {};
    start = *stated;
  }
  if (reader.Take<uint8_t>() != kOmitted) reader.TakeUleb128();  // where the types are
  auto encoding = reader.Take<uint8_t>();
  uint64_t size = reader.TakeUleb128();
  size_t end = reader.position() + std::min<uint64_t>(size, reader.left());
  std::vector<LinkAddr> pads;
  while (reader.ok() && reader.position() < end && pads.size() < kMaxCallSites) {
    TakeEncodedValue(&reader, encoding);  // the calls: start,
    TakeEncodedValue(&reader, encoding);  // and length
    auto pad = TakeEncodedValue(&reader, encoding);
    reader.TakeUleb128();  // what to do
    if (!pad || !reader.ok()) break;
    if (*pad != 0) pads.push_back({start + *pad});
  }
  return pads;
}

}  // namespace probed::elf
