#pragma once
// Where integer and pointer arguments are at a function's entry. Pure.

#include <array>
#include <cstdint>
#include <span>

#include "engine/lang/registers.h"

namespace probed::lang {

enum class CallingConvention : uint8_t {
  kSystemV,  // System V x86-64 ABI
  kGo,       // ABIInternal of Go 1.17 and later (Go, src/cmd/compile/abi-internal.md)
};

inline constexpr std::array<Reg, 6> kArgumentRegisters = {Reg::kDi, Reg::kSi, Reg::kDx,
                                                          Reg::kCx, Reg::kR8, Reg::kR9};
// Of words: a string takes two, a slice three, as do their parts wherever they stand.
inline constexpr std::array<Reg, 9> kGoArgumentRegisters = {
    Reg::kAx, Reg::kBx, Reg::kCx, Reg::kDi, Reg::kSi, Reg::kR8, Reg::kR9, Reg::kR10, Reg::kR11};

constexpr std::span<const Reg> ArgumentRegisters(CallingConvention convention) {
  if (convention == CallingConvention::kGo) return kGoArgumentRegisters;
  return kArgumentRegisters;
}

}  // namespace probed::lang
