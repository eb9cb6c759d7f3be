#include "elf/handle.h"

namespace probed::elf {
namespace {

constexpr uint64_t kMaxSections = 1 << 16;

// elf_begin allocates for as many sections as section 0 claims when the header has no count (gABI,
// "Sections"), and a sparse file can claim billions.
bool ClaimsTooManySections(const Image& image) {
  Elf64_Ehdr header{};
  Elf64_Shdr first{};
  return image.ReadInto(0, &header, sizeof header) && header.e_shnum == 0 &&
         image.ReadInto(header.e_shoff, &first, sizeof first) && first.sh_size > kMaxSections;
}

Elf* Begin(const Image& image) {
  static const bool ready = ::elf_version(EV_CURRENT) != EV_NONE;
  if (!ready || ClaimsTooManySections(image)) return nullptr;
  // Not ELF_C_READ_MMAP: a file cut short under a mapping raises SIGBUS.
  if (image.fd() >= 0) return ::elf_begin(image.fd(), ELF_C_READ, nullptr);
  // libelf writes into the memory only when told to update it.
  auto* start = const_cast<uint8_t*>(image.bytes().data());
  return ::elf_memory(reinterpret_cast<char*>(start), image.size());
}

}  // namespace

Handle::Handle(const Image& image) : image_(image), elf_(Begin(image)) {}

Elf_Data* Handle::Data(uint64_t offset, uint64_t size, Elf_Type type) const {
  if (!image_.Holds(offset, size)) return nullptr;
  return ::elf_getdata_rawchunk(elf_.get(), static_cast<int64_t>(offset), size, type);
}

std::span<const uint8_t> BytesOf(const Elf_Data* data) {
  if (data == nullptr) return {};
  return {static_cast<const uint8_t*>(data->d_buf), data->d_size};
}

}  // namespace probed::elf
