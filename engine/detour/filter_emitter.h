#pragma once
// Machine code of an event filter (engine/lang/filter.h), run before anything is reserved: it looks
// at the program's registers and memory, not at a payload. Temporary registers only.

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

  // Falls through when the hit passes.
  void Emit(Label& drop);

 private:
  void EmitOp(const lang::FilterOp& op, Label& if_true, Label& if_false);
  void LoadOperand(const lang::FilterOp& op);
  void CompareNumber(const lang::FilterOp& op, Label& if_true);
  void CompareText(const lang::FilterOp& op, Label& if_true, Label& if_false);
  void TestMembership(const lang::FilterOp& op, Label& if_true, Label& if_false);

  Assembler& a_;
  const DetourProbe& probe_;
  const lang::FilterCode& code_;
  FetchEmitter& fetch_;
  const HitPlace& place_;
};

}  // namespace probed::detour
