#pragma once
// Random fetch programs of the shapes that lang::Compile makes, with odd numbers in them.

#include <optional>

#include "engine/lang/fetch_code.h"
#include "tests/detour/holed_memory.h"

namespace probed::detour::testing {

inline constexpr uint64_t kFileBase = 0x5000;  // DetourProbe::file_base of these programs

class ProgramGenerator {
 public:
  explicit ProgramGenerator(HoledMemory& memory) : memory_(memory) {}

  lang::FetchProgram Next();

 private:
  lang::FetchOp& Emit(lang::FetchOpcode opcode);
  void EmitValue(bool may_end_in_load);
  void EmitSource();
  void EmitField();
  void EmitNumber();
  void EmitString();
  void SetShifts(lang::FetchOp& op);
  int32_t Offset();
  uint32_t AddFixed(uint32_t bytes, bool is_string);

  HoledMemory& memory_;
  lang::FetchCode code_;
  std::optional<int32_t> next_offset_;  // that makes the value just emitted a useful address
};

}  // namespace probed::detour::testing
