#include "engine/detour/sampling_code.h"

#include <cstddef>

#include "engine/ring/sampling.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers

namespace {

constexpr auto kNear = Xbyak::CodeGenerator::T_NEAR;
constexpr int kSkip = offsetof(ring::SamplingState, skip);
constexpr int kWindow = offsetof(ring::SamplingState, window);

// Each state is left in one step: a thread may be taken out, or preempted, at any instruction.
void Exchange(Assembler& a, int word, Label& retry) {
  a.lock();
  a.cmpxchg(ptr[rsi + word], rcx);
  a.jne(retry, kNear);
}

// rsi = the probe's SamplingState.
void EmitTurn(Assembler& a, uint32_t every, Label& left_out) {
  Label retry;
  a.L(retry);
  a.mov(rax, ptr[rsi + kSkip]);
  a.lea(rcx, ptr[rax - 1]);
  a.mov(edx, every - 1);
  a.test(rax, rax);
  a.cmovle(rcx, rdx);
  Exchange(a, kSkip, retry);
  a.test(rax, rax);
  a.jg(left_out, kNear);
}

void EmitShare(Assembler& a, const DetourProbe& probe, Label& left_out) {
  Label retry, same, exchange;
  a.rdtsc();
  a.shl(rdx, 32);
  a.or_(rax, rdx);
  a.mov(rcx, probe.seconds_per_tick);
  a.mul(rcx);
  a.mov(r9d, edx);  // the second
  a.L(retry);
  a.mov(rax, ptr[rsi + kWindow]);
  a.mov(rdx, rax);
  a.shr(rdx, 32);
  a.mov(ecx, r9d);
  a.sub(ecx, edx);
  a.jle(same);
  a.mov(rcx, r9);
  a.shl(rcx, 32);
  a.inc(rcx);
  a.jmp(exchange);
  a.L(same);
  a.cmp(eax, probe.sampling.per_second);
  a.jae(left_out, kNear);
  a.lea(rcx, ptr[rax + 1]);
  a.L(exchange);
  Exchange(a, kWindow, retry);
}

}  // namespace

void EmitSampling(Assembler& a, const DetourProbe& probe, const HitPlace& place, Label& left_out) {
  const ring::Sampling& sampling = probe.sampling;
  if (!sampling.is_needed()) return;
  const SharedMemory& memory = place.memory;
  a.mov(rsi, memory.ring + memory.geometry.counters_offset(probe.index) +
                 offsetof(ring::ProbeCounters, sampling));
  if (sampling.every > 1) EmitTurn(a, sampling.every, left_out);
  if (sampling.per_second > 0) EmitShare(a, probe, left_out);
}

}  // namespace probed::detour
