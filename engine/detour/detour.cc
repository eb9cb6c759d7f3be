#include "engine/detour/detour.h"

#include <cpuid.h>

#include "engine/detour/probe_block.h"
#include "engine/detour/shadow_code.h"
#include "engine/detour/shell.h"

namespace probed::detour {
namespace {

void EmitBody(const DetourRequest& request, const HitPlace& place, Assembler& assembler,
              Detour& detour) {
  Label disarmed;
  TestArmed(assembler, request.memory, disarmed);
  for (const DetourProbe& probe : request.probes)
    detour.blocks.push_back(
        ProbeBlockEmitter(assembler, probe, place, detour.blocks.empty()).Emit());
  if (request.hijack.trampoline != 0) {
    ShadowCode(assembler, detour).EmitHijack(request.hijack, request.site);
  }
  assembler.L(disarmed);
}

}  // namespace

// Asked once: in a virtual machine every cpuid is an exit to the hypervisor.
bool HasRdpid() {
  static const bool has_rdpid = [] {
    constexpr unsigned kRdpid = 1u << 22;  // CPUID.(7,0).ecx
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kRdpid) != 0;
  }();
  return has_rdpid;
}

bool HasRdtscp() {
  static const bool has_rdtscp = [] {
    constexpr unsigned kLeaf = 0x80000001;
    constexpr unsigned kRdtscp = 1u << 27;  // of its edx
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(kLeaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & kRdtscp) != 0;
  }();
  return has_rdtscp;
}

Result<Detour> Assemble(const DetourRequest& request) {
  PROBED_TRY(const FrameNeeds needs, CheckProbes(request.probes));
  const HitPlace place{.function = request.site,
                       .is_return = false,
                       .memory = request.memory,
                       .has_rdpid = request.has_rdpid};
  const auto body = [&](Assembler& assembler, Detour& detour) {
    EmitBody(request, place, assembler, detour);
  };
  PROBED_TRY(Detour detour, EmitShell(Frame(needs), request.memory,
                                      {.body = body, .tail = [](Assembler&, Detour&) {}}));
  PROBED_TRY(detour.region, arch::BuildRegionCopy(request.region, request.site,
                                                  request.buffer + detour.displaced));
  const std::vector<uint8_t>& displaced = detour.region.code;
  detour.code.insert(detour.code.end(), displaced.begin(), displaced.end());
  return detour;
}

Result<uint32_t> MeasureDetour(const DetourRequest& request) {
  constexpr uint64_t kSomewhereNear = 1 << 20;
  DetourRequest probe = request;
  probe.buffer = request.site + kSomewhereNear;
  PROBED_TRY(const Detour detour, Assemble(probe));
  return static_cast<uint32_t>(detour.code.size());
}

}  // namespace probed::detour
