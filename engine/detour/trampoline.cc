#include "engine/detour/trampoline.h"

#include "engine/detour/probe_block.h"
#include "engine/detour/shadow_code.h"
#include "engine/detour/shell.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers

namespace {

void EmitBody(const TrampolineRequest& request, Assembler& a, Detour& detour) {
  Label disarmed;
  ShadowCode shadow(a, detour);
  const HitPlace place{.function = request.function,
                       .is_return = true,
                       .memory = request.memory,
                       .has_rdpid = request.has_rdpid};
  shadow.EmitFind();
  TestArmed(a, request.memory, disarmed);
  for (const DetourProbe& probe : request.probes)
    detour.blocks.push_back(ProbeBlockEmitter(a, probe, place, false).Emit());
  a.L(disarmed);
  shadow.EmitPop();
}

}  // namespace

Result<Detour> AssembleTrampoline(const TrampolineRequest& request) {
  PROBED_TRY(FrameNeeds needs, CheckProbes(request.probes));
  needs.shadow = true;
  const auto body = [&](Assembler& a, Detour& detour) { EmitBody(request, a, detour); };
  // The word below the stack pointer is the one that `ret` has just taken off.
  const auto tail = [](Assembler& a, Detour&) { a.jmp(qword[rsp - 8]); };
  return EmitShell(Frame(needs), request.memory, {.body = body, .tail = tail});
}

}  // namespace probed::detour
