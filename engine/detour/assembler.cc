#include "engine/detour/assembler.h"

#include <algorithm>

namespace probed::detour {

void Assembler::LoadProgramRegister(const Xbyak::Reg64& to, lang::Reg reg, uint64_t site) {
  using lang::Reg;
  if (reg == Reg::kSp) return lea(to, ptr[rsp + frame_.size()]);
  if (const auto number = NumberOf(reg)) {
    if (const auto offset = frame_.OffsetOf(*number)) return mov(to, Slot(*offset));
    return mov(to, Xbyak::Reg64(*number));
  }
  switch (reg) {
    case Reg::kIp:
      return mov(to, site);
    case Reg::kCs:
    case Reg::kSs:
      xor_(to.cvt32(), to.cvt32());
      db(0x8c);  // mov r/m16, Sreg (Xbyak has no segment registers to read)
      return db(0xc0 | (reg == Reg::kCs ? 1 : 2) << 3 | to.getIdx());
    case Reg::kFlags:
      return mov(to, Slot(Frame::kFullFlags));
    default:
      return mov(to, ~uint64_t{0});  // %orig_ax: not in a system call
  }
}

void Assembler::LoadAt(const Xbyak::Reg64& to, uint64_t address, const Xbyak::Reg64& index) {
  constexpr uint64_t kLow = uint64_t{1} << 31;  // displacements are signed
  if (address < kLow) return mov(to, ptr[index + static_cast<uint32_t>(address)]);
  mov(Xbyak::util::rdx, address);
  mov(to, ptr[Xbyak::util::rdx + index]);
}

void Assembler::ReadFsBase(const Xbyak::Reg64& to) {
  db(0xae0f48f3, 4);  // rdfsbase
  db(0xc0 | to.getIdx());
}

void Assembler::ReadProcessorId(const Xbyak::Reg64& to) {
  db(0xc70ff3, 3);  // rdpid
  db(0xf8 | to.getIdx());
}

void Assembler::MayFault(Label& resume) {
  if (!resume.offset_) return resume.loads_.push_back(here());
  fix_ups_.push_back({here(), *resume.offset_});
}

void Assembler::L(Label& label) {
  CodeGenerator::L(label);
  label.offset_ = here();
  for (const uint32_t load : label.loads_)
    fix_ups_.push_back({load, here()});
}

std::vector<FixUp> Assembler::TakeFixUps() {
  std::ranges::sort(fix_ups_, {}, &FixUp::load);
  return std::move(fix_ups_);
}

}  // namespace probed::detour
