#include "engine/detour/trampoline.h"

#include "engine/detour/probe_block.h"
#include "engine/detour/shadow_code.h"
#include "engine/detour/shell.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers

namespace {

class TrampolineEmitter {
 public:
  TrampolineEmitter(const TrampolineRequest& request, Trampoline& trampoline)
      : request_(request), trampoline_(trampoline) {}

  void EmitBody(Assembler& a, Detour& detour);
  void EmitTail(Assembler& a);

 private:
  const TrampolineRequest& request_;
  Trampoline& trampoline_;
  Label stub_;
};

void TrampolineEmitter::EmitBody(Assembler& a, Detour& detour) {
  Label foreign, disarmed, done;
  ShadowCode shadow(a, request_.memory);
  const HitPlace place{.function = request_.function,
                       .is_return = true,
                       .memory = request_.memory,
                       .has_rdpid = request_.has_rdpid};
  shadow.EmitFind(foreign);
  trampoline_.found = a.here();
  TestArmed(a, request_.memory, disarmed);
  for (const DetourProbe& probe : request_.probes)
    detour.blocks.push_back(ProbeBlockEmitter(a, probe, place).Emit());
  a.L(disarmed);
  trampoline_.pop = a.here();
  shadow.EmitPop();
  a.jmp(done);
  a.L(foreign);
  a.lea(rax, ptr[rip + stub_]);
  a.mov(ptr[rsp + (a.frame().size() - 8)], rax);
  a.L(done);
}

// The word below the stack pointer is the one that `ret` has just taken off.
void TrampolineEmitter::EmitTail(Assembler& a) {
  a.jmp(qword[rsp - 8]);
  a.L(stub_);
  trampoline_.foreign = a.here();
  a.int3();
}

}  // namespace

Result<Trampoline> AssembleTrampoline(const TrampolineRequest& request) {
  PROBED_TRY(FrameNeeds needs, CheckProbes(request.probes));
  needs.shadow = true;
  Trampoline trampoline;
  std::optional<TrampolineEmitter> emitter;
  const auto body = [&](Assembler& assembler, Detour& detour) {
    emitter.emplace(request, trampoline);
    emitter->EmitBody(assembler, detour);
  };
  const auto tail = [&](Assembler& assembler, Detour&) { emitter->EmitTail(assembler); };
  PROBED_TRY(trampoline.detour,
             EmitShell(Frame(needs), request.memory, {.body = body, .tail = tail}));
  return trampoline;
}

}  // namespace probed::detour
