#include "engine/detour/shadow_code.h"

#include <bit>
#include <cstddef>
#include <utility>

#include "engine/lang/calling_convention.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using ring::ShadowFrame;
using ring::ShadowStack;
using ring::ThreadEntry;
using Xbyak::CodeGenerator;

namespace {

constexpr auto kNear = CodeGenerator::T_NEAR;
constexpr int kFrameBytes = sizeof(ShadowFrame);
constexpr int kEntryShift = std::countr_zero(sizeof(ThreadEntry));
static_assert(std::has_single_bit(sizeof(ThreadEntry)));

}  // namespace

// r8 = this thread's ShadowStack. No thread stands behind the first int3 unless it ran into it. A
// program that has not set its fs base yet has none of the table's bases: it would find the first
// free entry, which leads to the beginning of the ring.
void ShadowCode::FindStack() {
  Label search, found;
  a_.ReadFsBase(rax);
  a_.cmp(rax, ThreadEntry::kRemoved);
  a_.jbe(ask_);
  a_.mov(rcx, ring::kThreadHashFactor);
  a_.imul(rcx, rax);
  a_.shr(rcx, 64 - ring::kThreadHashBits);
  a_.shl(ecx, kEntryShift);
  a_.mov(rdx, memory_.control + memory_.geometry.thread_offset(0));
  a_.L(search);
  a_.mov(r8, ptr[rdx + rcx + offsetof(ThreadEntry, shadow_stack)]);
  a_.mov(r9, ptr[rdx + rcx + offsetof(ThreadEntry, thread)]);
  a_.cmp(r9, rax);
  a_.je(found);
  a_.test(r9, r9);
  a_.jz(ask_);
  a_.add(ecx, sizeof(ThreadEntry));
  a_.and_(ecx, (ring::kThreadEntries - 1) << kEntryShift);
  a_.jmp(search);
  a_.L(ask_);
  detour_.ask = a_.here();
  a_.int3();
  a_.int3();
  a_.L(found);
  a_.mov(rdx, memory_.ring);
  a_.add(r8, rdx);
}

// to = the frame that has number r9.
void ShadowCode::FrameAddress(const Xbyak::Reg64& to) {
  a_.imul(to, r9, kFrameBytes);
  a_.lea(to, ptr[r8 + to + offsetof(ShadowStack, frames)]);
}

// probe: its index. Changes rax.
void ShadowCode::CountUnwound(const Xbyak::Reg64& probe) {
  a_.mov(rax, memory_.ring + offsetof(ring::ProbeCounters, unwound));
  a_.shl(probe, std::countr_zero(sizeof(ring::ProbeCounters)));
  a_.lock();
  a_.inc(qword[rax + probe]);
  a_.mov(rax, memory_.ring + memory_.geometry.unwound_offset());
  a_.lock();
  a_.inc(qword[rax]);
}

// rsi = the slot, r9 = depth: takes dead frames off the top. A frame with a lower slot may be alive
// on another stack, so what its slot holds decides.
void ShadowCode::Reap() {
  Label next, dead, take_off, done;
  a_.L(next);
  a_.test(r9, r9);
  a_.jz(done);
  a_.lea(rcx, ptr[r9 - 1]);
  a_.imul(rcx, rcx, kFrameBytes);
  a_.lea(rcx, ptr[r8 + rcx + offsetof(ShadowStack, frames)]);
  a_.mov(rdx, ptr[rcx + offsetof(ShadowFrame, slot)]);
  a_.test(rdx, rdx);
  a_.jz(take_off);
  a_.cmp(rdx, rsi);
  a_.ja(done);
  a_.MayFault(dead);
  a_.mov(rdx, ptr[rdx]);
  a_.cmp(rdx, ptr[rcx + offsetof(ShadowFrame, trampoline)]);
  a_.je(done);
  a_.L(dead);
  a_.mov(rcx, ptr[rcx + offsetof(ShadowFrame, probe)]);
  a_.and_(ecx, ring::kMaxProbes - 1);
  CountUnwound(rcx);
  a_.L(take_off);
  a_.dec(r9);
  a_.mov(ptr[r8 + offsetof(ShadowStack, depth)], r9);
  a_.jmp(next);
  a_.L(done);
}

// Writes the frame number r9, at rcx, for the slot at rsi.
void ShadowCode::Push(const Hijack& hijack, uint64_t site) {
  Label outermost;
  FrameAddress(rcx);
  a_.mov(ptr[rcx + offsetof(ShadowFrame, slot)], rsi);
  a_.mov(rdx, ptr[rsi]);
  a_.mov(ptr[rcx + offsetof(ShadowFrame, next)], rdx);
  a_.test(r9, r9);
  a_.jz(outermost);
  a_.cmp(ptr[rcx - kFrameBytes + offsetof(ShadowFrame, slot)], rsi);
  a_.cmove(rdx, ptr[rcx - kFrameBytes + offsetof(ShadowFrame, caller)]);
  a_.L(outermost);
  a_.mov(ptr[rcx + offsetof(ShadowFrame, caller)], rdx);
  a_.mov(qword[rcx + offsetof(ShadowFrame, probe)], hijack.probes.front());
  for (uint32_t i = 0; i < hijack.arguments; ++i) {
    a_.LoadProgramRegister(rax, lang::kArgumentRegisters[i], site);
    a_.mov(ptr[rcx + offsetof(ShadowFrame, arguments) + 8 * i], rax);
  }
  a_.mov(rdx, hijack.trampoline);
  a_.mov(ptr[rcx + offsetof(ShadowFrame, trampoline)], rdx);
  a_.inc(r9);
  a_.mov(ptr[r8 + offsetof(ShadowStack, depth)], r9);
}

void ShadowCode::EmitHijack(const Hijack& hijack, uint64_t site) {
  Label end;
  ProbeBlock block{.begin = a_.here(), .committed = 0, .end = 0, .reserved = {}};
  a_.mov(rdx, memory_.control);
  a_.xor_(eax, eax);
  for (const uint32_t probe : hijack.probes)
    a_.or_(eax, dword[rdx + memory_.geometry.control_offset(probe)]);
  a_.jz(end, kNear);
  FindStack();
  a_.lea(rsi, ptr[rsp + a_.frame().size()]);
  a_.mov(rdx, hijack.daemon_trampoline);
  a_.cmp(ptr[rsi], rdx);
  a_.je(ask_);
  a_.mov(r9, ptr[r8 + offsetof(ShadowStack, depth)]);
  Reap();
  a_.cmp(r9, ring::kShadowFrames);
  a_.jae(ask_, kNear);
  Push(hijack, site);
  detour_.pushed = a_.here();
  a_.mov(ptr[rsi], rdx);
  block.committed = a_.here();
  block.end = a_.here();
  a_.L(end);
  detour_.blocks.push_back(std::move(block));
}

void ShadowCode::EmitFind() {
  Label search;
  FindStack();
  a_.lea(rsi, ptr[rsp + (a_.frame().size() - 8)]);
  a_.mov(r9, ptr[r8 + offsetof(ShadowStack, depth)]);
  a_.cmp(r9, ring::kShadowFrames);
  a_.ja(ask_, kNear);
  a_.L(search);
  a_.sub(r9, 1);
  a_.jb(ask_, kNear);
  FrameAddress(rcx);
  a_.cmp(ptr[rcx + offsetof(ShadowFrame, slot)], rsi);
  a_.jne(search);
  a_.mov(a_.Slot(a_.frame().shadow_stack()), r8);
  a_.mov(a_.Slot(a_.frame().shadow_frame()), rcx);
  a_.mov(rax, ptr[rcx + offsetof(ShadowFrame, next)]);
  a_.mov(ptr[rsi], rax);
}

// Either way with one store, so that whoever stops the thread finds the frame there or gone. Frames
// above it belong to other stacks, or are dead; a later hijack takes the gap off.
void ShadowCode::EmitPop() {
  Label top, done;
  ProbeBlock block{.begin = a_.here(), .committed = 0, .end = 0, .reserved = {}};
  a_.mov(r8, a_.Slot(a_.frame().shadow_stack()));
  a_.mov(rdx, a_.Slot(a_.frame().shadow_frame()));
  a_.mov(r9, ptr[r8 + offsetof(ShadowStack, depth)]);
  a_.dec(r9);
  FrameAddress(rcx);
  a_.cmp(rdx, rcx);
  a_.je(top);
  a_.mov(qword[rdx + offsetof(ShadowFrame, slot)], 0);
  block.committed = a_.here();
  a_.jmp(done);
  a_.L(top);
  a_.mov(ptr[r8 + offsetof(ShadowStack, depth)], r9);
  block.end = a_.here();
  a_.L(done);
  detour_.blocks.push_back(std::move(block));
}

}  // namespace probed::detour
