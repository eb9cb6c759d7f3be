#pragma once
// Where the System V x86-64 ABI passes integer and pointer arguments.

#include <array>

#include "engine/lang/registers.h"

namespace probed::lang {

inline constexpr std::array<Reg, 6> kArgumentRegisters = {Reg::kDi, Reg::kSi, Reg::kDx,
                                                          Reg::kCx, Reg::kR8, Reg::kR9};

}  // namespace probed::lang
