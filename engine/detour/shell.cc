#include "engine/detour/shell.h"

#include <cstddef>

namespace probed::detour {

using namespace Xbyak::util;  // registers

namespace {

constexpr size_t kFirstBuffer = 8 << 10;
constexpr size_t kLargestBuffer = 8 << 20;

void EmitPrologue(Assembler& a, Detour& detour) {
  const Frame& frame = a.frame();
  uint32_t below = 0;
  const auto step = [&](uint32_t more) {
    below += more;
    detour.prologue.push_back({a.here(), below});
  };
  step(0);
  a.lea(rsp, ptr[rsp - kRedZone]);
  step(kRedZone);
  for (auto slot = frame.slots().rbegin(); slot != frame.slots().rend(); ++slot) {
    a.push(Xbyak::Reg64(slot->number));
    step(8);
    detour.saved.push_back({slot->user_regs_offset, slot->offset});
  }
  const uint32_t flags = frame.has_full_flags() ? 8 : 0;
  a.lea(rsp, ptr[rsp - (frame.pushed() - flags)]);
  step(frame.pushed() - flags);
  if (flags != 0) {
    a.pushfq();
    step(flags);
  }
  detour.body = a.here();
  a.lahf();
  a.seto(al);
  a.mov(dword[rsp + frame.status_flags()], eax);
  detour.flags_begin = a.here();
}

// No popf, which takes longer than all the rest: addition makes the overflow flag, sahf the others.
void EmitEpilogue(Assembler& a, Detour& detour) {
  const Frame& frame = a.frame();
  a.mov(eax, dword[rsp + frame.status_flags()]);
  a.add(al, 0x7f);
  a.sahf();
  detour.flags_end = a.here();
  uint32_t below = frame.size();
  const auto step = [&](uint32_t less) {
    below -= less;
    detour.epilogue.push_back({a.here(), below});
  };
  a.lea(rsp, ptr[rsp + frame.pushed()]);
  step(frame.pushed());
  for (const Frame::Slot& slot : frame.slots()) {
    a.pop(Xbyak::Reg64(slot.number));
    step(8);
  }
  a.lea(rsp, ptr[rsp + kRedZone]);
  detour.displaced = a.here();
}

Detour EmitAll(Assembler& a, const SharedMemory& memory, const ShellParts& parts) {
  Detour detour;
  detour.save_area = a.frame().size();
  detour.status_flags = static_cast<uint16_t>(a.frame().status_flags());
  detour.memory = memory;
  EmitPrologue(a, detour);
  parts.body(a, detour);
  EmitEpilogue(a, detour);
  parts.tail(a, detour);
  detour.fix_ups = a.TakeFixUps();
  detour.code.assign(a.getCode(), a.getCode() + a.getSize());
  return detour;
}

}  // namespace

Result<Detour> EmitShell(const Frame& frame, const SharedMemory& memory, const ShellParts& parts) {
  for (size_t size = kFirstBuffer; size <= kLargestBuffer; size *= 4) {
    std::vector<uint8_t> buffer(size);
    Assembler assembler(buffer, frame);
    Detour detour = EmitAll(assembler, memory, parts);
    const int error = Xbyak::GetError();
    if (error == 0) return detour;
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

void TestArmed(Assembler& a, const SharedMemory& memory, Label& disarmed) {
  a.mov(rdx, memory.control);
  a.test(dword[rdx + offsetof(ring::ControlHeader, armed)], ring::kArmedMask);
  a.jz(disarmed, Xbyak::CodeGenerator::T_NEAR);
}

}  // namespace probed::detour
