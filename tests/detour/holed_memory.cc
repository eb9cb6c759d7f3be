#include "tests/detour/holed_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace probed::detour::testing {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPages = 24;
// Five readable pages in a row, long enough for any string; then single ones between holes.
constexpr uint64_t kUnmapped[] = {6, 9, 12};
constexpr uint64_t kProtected[] = {0, 14, 17, 23};  // at both ends, or others would be mapped there
constexpr uint64_t kBehindFile[] = {19, 21};

}  // namespace

HoledMemory::HoledMemory(uint64_t seed) : random_(seed), memory_(kPages * kPage) {
  for (uint64_t page = 0; page < kPages; ++page)
    Fill(page);
  // A string longer than any limit of the kernel, and one that ends exactly at it.
  std::memset(memory_.data() + kPage + 100, 'L', 4095);
  MakeHoles();
}

HoledMemory::~HoledMemory() = default;

void HoledMemory::Fill(uint64_t page) {
  std::byte* const bytes = memory_.data() + page * kPage;
  for (uint64_t at = 0; at < kPage;) {
    const uint64_t left = kPage - at;
    if (at % 8 == 0 && left >= 8 && OneIn(3)) {
      const uint64_t word = OneIn(4) ? Below(40) : Address();
      std::memcpy(bytes + at, &word, 8);
      at += 8;
      continue;
    }
    const uint64_t length = std::min(left, Below(OneIn(10) ? 600 : 24) + 1);
    for (uint64_t i = 0; i < length; ++i)
      bytes[at + i] = static_cast<std::byte>(OneIn(8) ? 0x80 + Below(128) : 1 + Below(127));
    at += length;
    if (at < kPage && !OneIn(4)) bytes[at++] = std::byte{0};
  }
}

void HoledMemory::MakeHoles() {
  for (const uint64_t page : kUnmapped)
    ::munmap(memory_.data() + page * kPage, kPage);
  for (const uint64_t page : kProtected)
    ::mprotect(memory_.data() + page * kPage, kPage, PROT_NONE);
  const int file = ::memfd_create("detour_test", MFD_CLOEXEC);
  for (const uint64_t page : kBehindFile)
    (void)::mmap(memory_.data() + page * kPage, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
  ::close(file);
}

uint64_t HoledMemory::Address() {
  constexpr uint64_t kOdd[] = {0,
                               8,
                               4095,
                               ~uint64_t{0},
                               ~uint64_t{0} - 7,
                               0x7fff'ffff'fff8,
                               0x8000'0000'0000,
                               0x8000'0000'0000'0000,
                               0xffff'8000'0000'0000};
  if (OneIn(20)) return kOdd[Below(std::size(kOdd))];
  if (OneIn(20)) return random_();
  // Not on the outermost pages, so that small offsets do not lead out.
  if (OneIn(2)) return memory_.address() + (2 + Below(kPages - 2)) * kPage - Below(24);
  return memory_.address() + kPage + Below((kPages - 2) * kPage);
}

}  // namespace probed::detour::testing
