#pragma once
// Machine code of one probe's fetch program (engine/lang), in two passes: what it needs in the
// ring, then the payload itself. Gives the same bytes as lang::Fetch.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "engine/detour/assembler.h"
#include "engine/detour/hit_place.h"
#include "engine/detour/string_code.h"
#include "engine/lang/fetch_code.h"

namespace probed::detour {

// DETOUR_UNSUPPORTED: `what` needs the daemon.
Error Unsupported(std::string_view what);

class FetchEmitter {
 public:
  FetchEmitter(Assembler& assembler, const DetourProbe& probe, const HitPlace& place);

  // DETOUR_UNSUPPORTED: what only the daemon can fetch.
  static Status Check(const DetourProbe& probe);
  // What the frame must have room for.
  static FrameNeeds NeedsOf(const DetourProbe& probe);
  // The payload has data behind its fixed part, so its size is known after Measure only.
  static bool HasData(const DetourProbe& probe);
  // Where in the frame Measure leaves the length of the field's string (Frame::length_word); for
  // the first few strings only.
  static std::optional<uint32_t> LengthWordOf(const lang::FetchCode& code,
                                              const lang::FetchField& field);

  // kTotal = size of all data, and the number of strings above it. `untouched`: the program's
  // registers kUntouched have not been changed.
  void Measure(bool untouched);
  // Some string is searched again as it is copied.
  bool SearchesTwice() const;
  // Some data might not fit into what was measured for it: it is held against Frame::limit().
  bool NeedsLimit() const;
  // Stores the whole payload.
  void Store();

  // For filters: rax = the number that a field stores, in its low bytes; 0 when it cannot be read.
  void LoadNumber(const lang::FetchField& field);
  // rax = the program's register; %ip at return is the caller's.
  void LoadRegister(lang::Reg reg);
  // rax = where the string that a field stores begins.
  void LoadAddress(const lang::FetchField& field, Label& unreadable);

  uint32_t payload() const { return payload_; }
  uint32_t fixed_bytes() const { return static_cast<uint32_t>(code_.initial.size()); }
  // Data of literals, which Measure does not count.
  uint32_t literal_bytes() const;

 private:
  enum class Pass : uint8_t { kMeasure, kStore };

  void EmitFields(Pass pass);
  void EmitField(const lang::FetchField& field, Pass pass);
  void MeasureString(const lang::FetchField& field, uint32_t length_word);
  void StoreString(const lang::FetchField& field, uint32_t length_word);
  bool IsFirstData(const lang::FetchField& wanted) const;
  void EmitOp(const lang::FetchOp& op, Pass pass, Label& leave);
  const lang::FetchOp* FirstMeasured() const;
  void CopyRegister(lang::Reg reg);
  bool IsMeasured(const lang::FetchField& field) const;
  bool IsCertain(const lang::FetchField& field) const;

  void Produce(const lang::FetchOp& op, Label& leave);
  void LoadFromShadowFrame(size_t offset);
  void LoadStackSlot(uint64_t index);
  void SetLength(const lang::FetchOp& op);
  void ExtractBits(const lang::FetchOp& op);

  void StoreInitial();
  void StoreInitial(uint32_t begin, uint32_t end);
  uint32_t StoreRepeated(uint32_t begin, uint32_t end);
  void StoreNumber(const Xbyak::RegExp& to, uint8_t size);
  void StoreMemory(const lang::FetchOp& op);
  void LoadElement(const lang::FetchOp& op, Label& fault);
  void LoadPartly(const lang::FetchOp& op, Label& begin, Label& done);

  void EmitStringArray(const lang::FetchOp& op, Pass pass, Label& leave);
  void ClampLength();
  void MeasureBytes(const lang::FetchOp& op, Label& leave);
  void StoreBytes(const lang::FetchOp& op);
  void StoreLiteral(const lang::FetchOp& op, Label& leave);

  Assembler& a_;
  const DetourProbe& probe_;
  const lang::FetchCode& code_;
  const HitPlace& place_;
  const uint32_t payload_;  // where it begins in the record
  const uint32_t max_string_;
  StringCode strings_;
  const lang::FetchOp* direct_ = nullptr;  // while it is emitted kUntouched are as they were
};

}  // namespace probed::detour
