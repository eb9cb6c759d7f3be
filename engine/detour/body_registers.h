#pragma once
// How a probe's body uses the registers that it may change (frame.h).

#include <array>

#include "engine/detour/assembler.h"

namespace probed::detour {

// The value register of the fetch program. Temporary registers: rcx, rdx, rsi, r9.
inline const Xbyak::Reg64& kValue = Xbyak::util::rax;
// Pass 1: string bytes in the low half, strings in the high half. Pass 2: the record.
inline const Xbyak::Reg64& kTotal = Xbyak::util::r8;
inline constexpr uint64_t kOneString = uint64_t{1} << 32;  // in kTotal
inline const Xbyak::Reg64& kRecord = Xbyak::util::r8;
// From the reservation to its commit, where the daemon looks for it too (leave.cc).
inline const Xbyak::Reg64& kCommit = Xbyak::util::r10;
// What a record with data takes, in units of ring::kRecordAlignment, from Measure to its header.
inline const Xbyak::Reg64& kUnits = Xbyak::util::r11;
// Strings only: where the next data byte goes, and 0x80 in each byte for the search for a NUL.
inline const Xbyak::Reg64& kCursor = Xbyak::util::rdi;
inline const Xbyak::Reg64& kHighBits = Xbyak::util::r11;

// Registers (the processor's numbers: rcx, rsi, rdi, r9, r10) that nothing has changed when the
// first block of a detour begins to measure. To read one is faster than to read where it was just
// saved.
inline constexpr std::array<uint8_t, 5> kUntouched = {1, 6, 7, 9, 10};

inline constexpr uint32_t kEntryPayload = sizeof(ring::RecordHeader);  // from kRecord
inline constexpr uint32_t kReturnPayload = kEntryPayload + sizeof(uint64_t);

}  // namespace probed::detour
