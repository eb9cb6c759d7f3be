#pragma once
// Three kinds of address that look alike and must not be mixed: where a byte is in a file, where
// the linker put it, and where it is in one process. Conversion goes through a segment or a module
// only.

#include <compare>
#include <cstdint>
#include <functional>

namespace probed {

template <class Tag>
struct StrongAddress {
  uint64_t value = 0;

  constexpr auto operator<=>(const StrongAddress&) const = default;
  constexpr StrongAddress operator+(uint64_t bytes) const { return {value + bytes}; }
  constexpr StrongAddress operator-(uint64_t bytes) const { return {value - bytes}; }
  constexpr uint64_t operator-(StrongAddress other) const { return value - other.value; }
};

// Byte position in an ELF file.
using FileOffset = StrongAddress<struct FileOffsetTag>;
// Address in the file's own numbering (p_vaddr, st_value).
using LinkAddr = StrongAddress<struct LinkAddrTag>;
// Address in one running process.
using RemoteAddr = StrongAddress<struct RemoteAddrTag>;

}  // namespace probed

template <class Tag>
struct std::hash<probed::StrongAddress<Tag>> {
  size_t operator()(probed::StrongAddress<Tag> address) const noexcept {
    return std::hash<uint64_t>{}(address.value);
  }
};
