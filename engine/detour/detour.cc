#include "engine/detour/detour.h"

#include <cpuid.h>

#include <cstddef>

#include "engine/detour/body_registers.h"
#include "engine/detour/fetch_emitter.h"
#include "engine/detour/filter_emitter.h"
#include "engine/detour/probe_block.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers

namespace {

constexpr size_t kFirstBuffer = 8 << 10;
constexpr size_t kLargestBuffer = 8 << 20;

class DetourEmitter {
 public:
  DetourEmitter(const DetourRequest& request, const Frame& frame, std::span<uint8_t> buffer)
      : request_(request), frame_(frame), a_(buffer, frame) {}

  void Emit();
  Detour Take();

 private:
  void EmitPrologue();
  void EmitBody();
  void EmitEpilogue();

  const DetourRequest& request_;
  const Frame& frame_;
  Assembler a_;
  Detour detour_;
};

void DetourEmitter::EmitPrologue() {
  const uint32_t pushed = frame_.has_full_flags() ? 8 : 0;
  const auto step = [&](uint32_t below) { detour_.prologue.push_back({a_.here(), below}); };
  step(0);
  a_.lea(rsp, ptr[rsp - (frame_.size() - pushed)]);
  if (pushed != 0) {
    step(frame_.size() - pushed);
    a_.pushfq();
  }
  step(frame_.size());
  for (const Frame::Slot& slot : frame_.slots()) {
    a_.mov(a_.Slot(slot.offset), Xbyak::Reg64(slot.number));
    detour_.saved.push_back({slot.user_regs_offset, slot.offset});
  }
  detour_.body = a_.here();
  a_.lahf();
  a_.seto(al);
  a_.mov(dword[rsp + frame_.status_flags()], eax);
  detour_.flags_begin = a_.here();
}

void DetourEmitter::EmitBody() {
  Label disarmed;
  a_.mov(rdx, request_.memory.control);
  a_.test(dword[rdx + offsetof(ring::ControlHeader, armed)], ring::kArmedMask);
  a_.jz(disarmed, Xbyak::CodeGenerator::T_NEAR);
  for (const DetourProbe& probe : request_.probes)
    detour_.blocks.push_back(ProbeBlockEmitter(a_, request_, probe).Emit());
  a_.L(disarmed);
}

// No popf, which takes longer than all the rest: addition makes the overflow flag, sahf the others.
void DetourEmitter::EmitEpilogue() {
  a_.mov(eax, dword[rsp + frame_.status_flags()]);
  a_.add(al, 0x7f);
  a_.sahf();
  detour_.flags_end = a_.here();
  for (const Frame::Slot& slot : frame_.slots())
    a_.mov(Xbyak::Reg64(slot.number), a_.Slot(slot.offset));
  a_.lea(rsp, ptr[rsp + frame_.size()]);
  detour_.displaced = a_.here();
}

void DetourEmitter::Emit() {
  detour_.save_area = frame_.size();
  detour_.status_flags = static_cast<uint16_t>(frame_.status_flags());
  detour_.memory = request_.memory;
  EmitPrologue();
  EmitBody();
  EmitEpilogue();
}

Detour DetourEmitter::Take() {
  detour_.fix_ups = a_.TakeFixUps();
  detour_.code.assign(a_.getCode(), a_.getCode() + a_.getSize());
  return std::move(detour_);
}

Result<Detour> EmitInto(const DetourRequest& request, const Frame& frame) {
  for (size_t size = kFirstBuffer; size <= kLargestBuffer; size *= 4) {
    std::vector<uint8_t> buffer(size);
    DetourEmitter emitter(request, frame, buffer);
    emitter.Emit();
    const int error = Xbyak::GetError();
    if (error == 0) return emitter.Take();
    if (error != Xbyak::ERR_CODE_IS_TOO_BIG) {
      return Error{
          ErrorCode::kInternal, "DETOUR_NOT_ASSEMBLED", Xbyak::ConvertErrorToString(error), "", {}};
    }
  }
  return Error{ErrorCode::kUnimplemented,
               "DETOUR_UNSUPPORTED",
               "the probes at this place have too many arguments for a detour",
               "",
               {{"what", "too many arguments"}}};
}

}  // namespace

bool HasRdpid() {
  constexpr unsigned kRdpid = 1u << 22;  // CPUID.(7,0).ecx
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kRdpid) != 0;
}

Result<Detour> Assemble(const DetourRequest& request) {
  FrameNeeds needs;
  for (const DetourProbe& probe : request.probes) {
    PROBED_RETURN_IF_ERROR(FetchEmitter::Check(probe));
    if (probe.filter != nullptr) PROBED_RETURN_IF_ERROR(FilterEmitter::Check(probe));
    const FrameNeeds more = FetchEmitter::NeedsOf(probe);
    needs.strings |= more.strings;
    needs.full_flags |= more.full_flags;
  }
  PROBED_TRY(Detour detour, EmitInto(request, Frame(needs)));
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
