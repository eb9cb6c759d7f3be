#include "engine/probe/stopped_context.h"

#include "engine/tracee/process.h"

namespace probed::probe {

lang::RegisterFile ToRegisterFile(const user_regs_struct& regs) {
  using lang::Reg;
  lang::RegisterFile file;
  file[Reg::kAx] = regs.rax;
  file[Reg::kBx] = regs.rbx;
  file[Reg::kCx] = regs.rcx;
  file[Reg::kDx] = regs.rdx;
  file[Reg::kSi] = regs.rsi;
  file[Reg::kDi] = regs.rdi;
  file[Reg::kBp] = regs.rbp;
  file[Reg::kSp] = regs.rsp;
  file[Reg::kR8] = regs.r8;
  file[Reg::kR9] = regs.r9;
  file[Reg::kR10] = regs.r10;
  file[Reg::kR11] = regs.r11;
  file[Reg::kR12] = regs.r12;
  file[Reg::kR13] = regs.r13;
  file[Reg::kR14] = regs.r14;
  file[Reg::kR15] = regs.r15;
  file[Reg::kIp] = regs.rip;
  file[Reg::kCs] = regs.cs;
  file[Reg::kSs] = regs.ss;
  file[Reg::kFlags] = regs.eflags;
  file[Reg::kOrigAx] = regs.orig_rax;
  return file;
}

StoppedContext::StoppedContext(tracee::Stopped& stopped, const user_regs_struct& regs, uint64_t ip)
    : stopped_(stopped), registers_(ToRegisterFile(regs)) {
  registers_[lang::Reg::kIp] = ip;
}

void StoppedContext::Aim(uint64_t file_base, std::span<const uint64_t> entry_arguments) {
  file_base_ = file_base;
  entry_arguments_ = entry_arguments;
}

size_t StoppedContext::ReadMemory(uint64_t address, std::span<std::byte> out) {
  return stopped_.ReadSome(RemoteAddr{address}, out);
}

bool StoppedContext::ReadVector(int number, lang::VectorRegister& out) {
  return stopped_.ReadXmm(number, out);
}

std::string_view StoppedContext::comm() {
  if (comm_.empty()) comm_ = stopped_.process().comm(stopped_.tid());
  return comm_;
}

bool StoppedMemoryBus::Load(uint64_t address, std::span<std::byte> out) {
  return stopped_.process().memory().ReadSome(RemoteAddr{address}, out) == out.size();
}

bool StoppedMemoryBus::Store(uint64_t address, std::span<const std::byte> bytes) {
  return stopped_.process().memory().WriteAsProgram(RemoteAddr{address}, bytes);
}

}  // namespace probed::probe
