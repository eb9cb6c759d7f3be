#pragma once
// Machine code of one probe: its mode, a reservation in the ring of this CPU, the record.

#include "base/result.h"
#include "engine/detour/assembler.h"
#include "engine/detour/fetch_emitter.h"

namespace probed::detour {

class ProbeBlockEmitter {
 public:
  ProbeBlockEmitter(Assembler& assembler, const DetourRequest& request, const DetourProbe& probe);

  ProbeBlock Emit();

 private:
  void EmitMeasure();
  void EmitCpuAndTime();
  void EmitReservation();
  void EmitPadding();
  void EmitHeader();
  void EmitRecord();
  void EmitCounting();
  bool IsAlwaysOversize() const;
  uint32_t FixedLength() const;
  template <class Operand>
  void WithLength(Operand operand);

  Assembler& a_;
  const DetourRequest& request_;
  const DetourProbe& probe_;
  const bool has_data_;
  FetchEmitter fetch_;
  ProbeBlock block_;
  Label oversize_, lost_, not_recording_, retry_, padding_, end_;
};

}  // namespace probed::detour
