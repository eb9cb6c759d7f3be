#pragma once
// Machine code of an event filter (engine/lang/filter.h), run before anything is reserved: it looks
// at the program's registers and memory, not at a payload. Of a string that is matched with more
// than a plain text it needs to know the length: FetchEmitter::Measure has run before. Temporary
// registers only, and r11 is left alone.

#include <string>

#include "base/result.h"
#include "engine/detour/assembler.h"
#include "engine/detour/fetch_emitter.h"
#include "engine/lang/filter_code.h"

namespace probed::detour {

class FilterEmitter {
 public:
  FilterEmitter(Assembler& assembler, const DetourProbe& probe, FetchEmitter& fetch,
                const HitPlace& place)
      : a_(assembler), probe_(probe), code_(*probe.filter), fetch_(fetch), place_(place) {}

  // DETOUR_UNSUPPORTED: what only the daemon can compare.
  static Status Check(const DetourProbe& probe);
  // Measure must come first.
  static bool NeedsLengths(const DetourProbe& probe);

  // Falls through when the hit passes.
  void Emit(Label& drop);

 private:
  void EmitOp(const lang::FilterOp& op, Label& if_true, Label& if_false);
  void LoadOperand(const lang::FilterOp& op);
  void CompareNumber(const lang::FilterOp& op, Label& if_true);
  void LoadCpu();
  void CompareFloat(const lang::FilterOp& op, Label& if_true);
  void CompareText(const lang::FilterOp& op, Label& if_true, Label& if_false);
  void MatchLiteral(const lang::FetchOp& store, const lang::FilterPattern& pattern, Label& if_true);
  void MatchPattern(const lang::FetchField& field, const lang::FilterPattern& pattern,
                    Label& if_true, Label& if_false);
  void CompareWhole(const lang::FetchField& field, const std::string& text, Label& if_true,
                    Label& if_false);
  void TestMembership(const lang::FilterOp& op, Label& if_true, Label& if_false);

  Assembler& a_;
  const DetourProbe& probe_;
  const lang::FilterCode& code_;
  FetchEmitter& fetch_;
  const HitPlace& place_;
};

}  // namespace probed::detour
