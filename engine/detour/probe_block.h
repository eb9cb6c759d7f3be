#pragma once
// Machine code of one probe: its mode, a reservation in the ring of this CPU, the record.

#include <functional>
#include <vector>

#include "base/result.h"
#include "engine/detour/assembler.h"
#include "engine/detour/fetch_emitter.h"

namespace probed::detour {

// DETOUR_UNSUPPORTED, or what a frame for all of them must have.
Result<FrameNeeds> CheckProbes(std::span<const DetourProbe> probes);

class ProbeBlockEmitter {
 public:
  // The first of a detour finds registers as the program has left them (kUntouched).
  ProbeBlockEmitter(Assembler& assembler, const DetourProbe& probe, const HitPlace& place,
                    bool is_first);

  ProbeBlock Emit();

 private:
  void EmitFilter();
  void EmitMeasure();
  void EmitCpu();
  void EmitTime();
  const Xbyak::Reg64& Time() const;
  void EmitNextHead();
  void EmitRingAddresses();
  void AddLengthToCommit();
  void EmitReservation();
  void EmitHeader();
  void EmitRecord();
  void EmitCounting();
  void LoadMode(bool is_rdx_control);
  bool IsAlwaysOversize() const;
  bool IsSelective() const;
  bool MeasuresFirst() const;
  uint32_t FixedLength() const;

  Assembler& a_;
  const HitPlace& place_;
  const DetourProbe& probe_;
  const bool is_first_;
  const bool has_data_;
  FetchEmitter fetch_;
  ProbeBlock block_;
  std::vector<std::function<void()>> later_;  // what is left of the code before the reservation
  Label oversize_, lost_, filtered_, sampled_out_, not_recording_, retry_, end_;
};

}  // namespace probed::detour
