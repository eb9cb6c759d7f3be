#pragma once
// Machine code that measures and copies NUL-terminated strings, by the routines that all detours
// share as far as it can.

#include <cstdint>
#include <optional>

#include "engine/detour/assembler.h"

namespace probed::detour {

class StringCode {
 public:
  // Where in the payload; an array's element is counted by Frame::array_index().
  struct Slot {
    uint32_t offset = 0;
    bool in_array = false;
  };

  // `payload`: where it begins in the record. `routines`: where TheStringRoutines() stand.
  StringCode(Assembler& assembler, uint64_t routines, uint32_t payload, uint32_t max_string,
             bool kernel_rules)
      : a_(assembler),
        routines_(routines),
        payload_(payload),
        max_string_(max_string),
        kernel_rules_(kernel_rules) {}

  // kTotal += what the string at kValue + offset takes in the record. `length_word`: where on the
  // stack to leave its length word, kFaultSlot for one that cannot be read, if anywhere.
  void Measure(int32_t offset, std::optional<uint32_t> length_word = {});
  struct MeasuredSlot {
    uint32_t offset = 0;
    std::optional<uint32_t> begin;  // where its data will be in the payload, if that is known
  };
  // Copies the string at kValue + offset that has the length word in `length_word`, not a fault.
  void CopyMeasured(int32_t offset, uint32_t length_word, MeasuredSlot slot, Label& fault);
  // Copies rcx bytes from rsi to kCursor, which is behind them then, on a `fault` too.
  void CopyBytes(Label& fault);
  // kTotal += a string of this length.
  void Count(const Xbyak::Reg64& length);
  // Copies it to kCursor and stores its slot; a fault leaves the slot as it is.
  void Copy(int32_t offset, Slot slot);
  // Stores the slot of the data that begins at rdx and ends at kCursor; ecx: kTruncatedBit or 0.
  void StoreSlot(Slot slot);

 private:
  void LoadAddress(const Xbyak::Reg64& to, int32_t offset);
  void Call(uint32_t routine);
  void StoreMeasuredSlot(uint32_t length_word, MeasuredSlot slot);
  void CopyFirstWord(Label& found, Label& fault);

  Assembler& a_;
  const uint64_t routines_;
  const uint32_t payload_;
  const uint32_t max_string_;
  const bool kernel_rules_;  // a string that is too long is a fault
};

}  // namespace probed::detour
