#include "engine/tracee/stopped.h"

#include <algorithm>

#include "engine/sys/ptrace.h"
#include "engine/tracee/process.h"
#include "engine/tracee/thread.h"

namespace probed::tracee {

pid_t Stopped::tid() const {
  return thread_.tid();
}
Process& Stopped::process() const {
  return thread_.process();
}
const user_regs_struct& Stopped::regs() {
  return thread_.Regs();
}
user_regs_struct& Stopped::mutable_regs() {
  return thread_.MutableRegs();
}

void Stopped::FlushRegs() {
  thread_.FlushRegs();
}

void Stopped::Settle() {
  thread_.Settle();
}

void Stopped::AskForItsEnd() {
  thread_.AskForItsEnd();
}

void Stopped::GoToCopy(RemoteAddr copy) {
  mutable_regs().rip = copy.value;
  thread_.set_telling_ip(copy.value);
}

Result<std::vector<std::byte>> Stopped::ReadExtendedState() {
  return sys::GetXState(tid());
}

Status Stopped::WriteExtendedState(const std::vector<std::byte>& state) {
  return sys::SetXState(tid(), state);
}

bool Stopped::ReadXmm(int number, std::array<uint8_t, 16>& out) {
  // The legacy region of an XSAVE image holds %xmm0 at byte 160, 16 bytes each (Intel SDM volume 1,
  // section 13.4.1). GETREGSET gives the standard, uncompacted format.
  constexpr size_t kXmmStart = 160;
  if (number < 0 || number > 15) return false;
  Result<std::vector<std::byte>> state = ReadExtendedState();
  size_t start = kXmmStart + static_cast<size_t>(number) * out.size();
  if (!state.ok() || state->size() < start + out.size()) return false;
  std::transform(state->begin() + static_cast<ptrdiff_t>(start),
                 state->begin() + static_cast<ptrdiff_t>(start + out.size()), out.begin(),
                 [](std::byte byte) { return std::to_integer<uint8_t>(byte); });
  return true;
}

uint32_t Stopped::cpu() {
  return thread_.Cpu();
}

const siginfo_t& Stopped::signal_info() {
  return thread_.SignalInfo();
}

void Stopped::SetSignalInfo(const siginfo_t& info) {
  sys::SetSigInfo(tid(), info).Ignore();
}

void Stopped::DeferSignal(const siginfo_t& info) {
  thread_.DeferSignal(info);
}

std::optional<uint64_t> Stopped::ReadSignalMask() {
  uint64_t mask = 0;
  return sys::GetSigMask(tid(), mask).ok() ? std::optional(mask) : std::nullopt;
}

void Stopped::WriteSignalMask(uint64_t mask) {
  sys::SetSigMask(tid(), mask).Ignore();
}

size_t Stopped::ReadSome(RemoteAddr address, std::span<std::byte> out) {
  return thread_.ReadSome(address, out);
}

Status Stopped::ReadMemory(RemoteAddr address, std::span<std::byte> out) {
  return process().memory().Read(address, out);
}

Status Stopped::WriteMemory(RemoteAddr address, std::span<const std::byte> bytes) {
  return process().memory().Write(address, bytes, tid());
}

}  // namespace probed::tracee
