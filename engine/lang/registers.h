#pragma once
// The registers a definition can name, by the kernel's spelling (x86-64).

#include <array>
#include <cstddef>
#include <cstdint>

namespace probed::lang {

enum class Reg : uint8_t {
  kAx,
  kBx,
  kCx,
  kDx,
  kSi,
  kDi,
  kBp,
  kSp,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
  kIp,
  kCs,
  kSs,
  kFlags,
  kOrigAx,
  kCount,
};

struct RegisterFile {
  std::array<uint64_t, static_cast<size_t>(Reg::kCount)> values{};

  uint64_t operator[](Reg reg) const { return values[static_cast<size_t>(reg)]; }
  uint64_t& operator[](Reg reg) { return values[static_cast<size_t>(reg)]; }
};

using VectorRegister = std::array<uint8_t, 16>;  // low 128 bits of %xmmN

}  // namespace probed::lang
