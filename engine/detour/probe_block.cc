#include "engine/detour/probe_block.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/detour/body_registers.h"
#include "engine/detour/filter_emitter.h"
#include "engine/detour/sampling_code.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using ring::ProbeCounters;
using ring::RecordHeader;
using Xbyak::CodeGenerator;

namespace {

constexpr int kAlignment = ring::kRecordAlignment;
constexpr auto kNear = CodeGenerator::T_NEAR;
constexpr int kCommitShift = 13;  // position / 8 << 16
static_assert(ring::CommitWord(8 << 10, 24) == ((8 << 10) << kCommitShift | 3));
// Strings are stored in words of 8 bytes: the last may reach this far behind the payload.
constexpr uint32_t kSlack = 8;

// Several hits ahead. Behind the rings other shared memory follows.
constexpr uint32_t kPrefetch = 1024;

constexpr uint32_t kMostCpus = 1 << 12;  // VDSO_CPUNODE_BITS

constexpr uint32_t RoundUp(uint32_t bytes) {
  return (bytes + ring::kRecordAlignment - 1) & ~(ring::kRecordAlignment - 1);
}

}  // namespace

Result<FrameNeeds> CheckProbes(std::span<const DetourProbe> probes) {
  FrameNeeds needs;
  for (const DetourProbe& probe : probes) {
    PROBED_RETURN_IF_ERROR(FetchEmitter::Check(probe));
    if (probe.filter != nullptr) PROBED_RETURN_IF_ERROR(FilterEmitter::Check(probe));
    const FrameNeeds more = FetchEmitter::NeedsOf(probe);
    needs.strings |= more.strings;
    needs.full_flags |= more.full_flags;
  }
  return needs;
}

ProbeBlockEmitter::ProbeBlockEmitter(Assembler& assembler, const DetourProbe& probe,
                                     const HitPlace& place, bool is_first)
    : a_(assembler),
      place_(place),
      probe_(probe),
      is_first_(is_first),
      has_data_(FetchEmitter::HasData(probe)),
      fetch_(assembler, probe, place) {}

ProbeBlock ProbeBlockEmitter::Emit() {
  block_.begin = a_.here();
  LoadMode(is_first_);
  if (IsSelective()) {
    a_.test(eax, eax);
    a_.jz(end_, kNear);
  } else {
    a_.cmp(eax, ring::kModeRecord);
    a_.jne(not_recording_, kNear);
  }
  if (IsAlwaysOversize()) {
    a_.jmp(oversize_, kNear);
  } else {
    const bool measure_first = has_data_ && MeasuresFirst();
    if (measure_first) EmitMeasure();
    EmitFilter();
    if (has_data_ && !measure_first) EmitMeasure();
    later_ = a_.TakeLater();
    EmitReservation();
    EmitRecord();
  }
  EmitCounting();
  block_.end = a_.here();
  a_.L(end_);
  return block_;
}

// The first block of a detour begins with rdx as TestArmed has left it.
void ProbeBlockEmitter::LoadMode(bool is_rdx_control) {
  const SharedMemory& memory = place_.memory;
  if (!is_rdx_control) a_.mov(rdx, memory.control);
  const uint64_t mode =
      memory.geometry.control_offset(probe_.index) + offsetof(ring::ProbeControl, mode);
  a_.mov(eax, dword[rdx + static_cast<uint32_t>(mode)]);
}

// What is counted only is filtered all the same.
bool ProbeBlockEmitter::IsSelective() const {
  return probe_.filter != nullptr || probe_.sampling.is_needed();
}

// The fixed part alone exceeds the kernel's limit.
bool ProbeBlockEmitter::IsAlwaysOversize() const {
  return probe_.limits.kernel_string_rules &&
         probe_.program->code().kernel_fixed_size > lang::kKernelMaxRecord;
}

// Only what fits the kernel's limit is filtered, and some filters look at lengths.
bool ProbeBlockEmitter::MeasuresFirst() const {
  return probe_.limits.kernel_string_rules ||
         (probe_.filter != nullptr && FilterEmitter::NeedsLengths(probe_));
}

uint32_t ProbeBlockEmitter::FixedLength() const {
  return fetch_.payload() + fetch_.fixed_bytes() + fetch_.literal_bytes();
}

void ProbeBlockEmitter::EmitFilter() {
  if (probe_.filter != nullptr) FilterEmitter(a_, probe_, fetch_, place_).Emit(filtered_);
  EmitSampling(a_, probe_, place_, sampled_out_);
  if (!IsSelective()) return;
  LoadMode(false);
  a_.cmp(eax, ring::kModeRecord);
  a_.jne(not_recording_, kNear);
}

void ProbeBlockEmitter::EmitMeasure() {
  fetch_.Measure(is_first_ && (MeasuresFirst() || !IsSelective()));
  if (probe_.limits.kernel_string_rules) {
    a_.mov(rax, kTotal);
    a_.shr(rax, 32);
    a_.add(eax, kTotal.cvt32());
    a_.cmp(eax, lang::kKernelMaxRecord - probe_.program->code().kernel_fixed_size);
    a_.ja(oversize_, kNear);
  }
  a_.mov(eax, kTotal.cvt32());
  a_.lea(ecx, ptr[rax + (FixedLength() - kEntryPayload)]);
  a_.mov(dword[rsp + a_.frame().payload_bytes()], ecx);
  a_.lea(kUnits.cvt32(), ptr[rax + (FixedLength() + kSlack + ring::kRecordAlignment - 1)]);
  a_.shr(kUnits.cvt32(), std::countr_zero(ring::kRecordAlignment));
}

// rcx = number of this CPU. Where that takes the clock's instruction, r9 = time.
void ProbeBlockEmitter::EmitCpu() {
  if (place_.has_rdpid) {
    a_.ReadProcessorId(rcx);
  } else {
    a_.rdtscp();
    a_.shl(rdx, 32);
    a_.lea(r9, ptr[rdx + rax]);
  }
  // Above the CPU's number the kernel puts the node's (vdso_encode_cpunode).
  a_.and_(ecx, std::min(place_.memory.geometry.cpu_count, kMostCpus) - 1);
}

// rdx = time. Waits for what is before it as well as the compare-and-exchange does, so next to that
// it costs least.
void ProbeBlockEmitter::EmitTime() {
  if (!place_.has_rdpid) return;
  a_.mov(r9, rax);
  a_.rdtsc();
  a_.shl(rdx, 32);
  a_.or_(rdx, rax);
  a_.mov(rax, r9);
}

const Xbyak::Reg64& ProbeBlockEmitter::Time() const {
  return place_.has_rdpid ? rdx : r9;
}

// Of this CPU's ring: rsi = its head, r10 = what its tail is, rcx = its records.
void ProbeBlockEmitter::EmitRingAddresses() {
  const ring::Geometry& geometry = place_.memory.geometry;
  a_.shl(ecx, std::countr_zero(sizeof(ring::RingTail)));
  a_.mov(rsi, place_.memory.ring + geometry.head_offset(0));
  a_.lea(rsi, ptr[rsi + rcx * (sizeof(ring::RingHeader) / sizeof(ring::RingTail))]);
  a_.LoadAt(r10, place_.memory.control + geometry.tail_offset(0), rcx);
  a_.imul(rcx, rcx, static_cast<int>(geometry.stride() / sizeof(ring::RingTail)));
  a_.mov(rax, place_.memory.ring + geometry.records_offset(0));
  a_.add(rcx, rax);
}

// kCommit |= the record's length.
void ProbeBlockEmitter::AddLengthToCommit() {
  if (!has_data_) {
    a_.or_(kCommit, RoundUp(FixedLength()) / ring::kRecordAlignment);
  } else {
    a_.or_(kCommit, kUnits);
  }
}

// rdi = the head when this record, of which rax is the position, is in the ring.
void ProbeBlockEmitter::EmitNextHead() {
  if (has_data_) return a_.lea(rdi, ptr[rax + kUnits * kAlignment]);
  a_.lea(rdi, ptr[rax + RoundUp(FixedLength())]);
}

// On success: kRecord, kCommit, Time().
void ProbeBlockEmitter::EmitReservation() {
  const auto ring_bytes = static_cast<uint32_t>(place_.memory.geometry.ring_bytes);
  a_.L(retry_);
  EmitCpu();
  EmitRingAddresses();
  a_.mov(rax, ptr[rsi]);
  EmitNextHead();
  a_.mov(r8, rdi);
  a_.sub(r8, r10);
  a_.cmp(r8, ring_bytes);
  a_.ja(lost_, kNear);
  a_.mov(r8, rax);
  a_.and_(r8, ring_bytes - 1);
  a_.add(kRecord, rcx);
  a_.mov(kCommit, rax);
  a_.shl(kCommit, kCommitShift);
  AddLengthToCommit();
  EmitTime();
  a_.lock();
  a_.cmpxchg(ptr[rsi], rdi);
  block_.reserved.push_back({.begin = a_.here(), .end = 0, .tentative = true});
  a_.jne(retry_, kNear);
}

void ProbeBlockEmitter::EmitHeader() {
  // The reader has just cleared what comes next, on another CPU. Were those lines not asked for in
  // time, the next hit's compare-and-exchange would wait until this one's stores have them.
  a_.prefetchw(ptr[kRecord + kPrefetch]);
  a_.mov(ptr[kRecord + offsetof(RecordHeader, tsc)], Time());
  a_.ReadFsBase(rax);
  a_.mov(ptr[kRecord + offsetof(RecordHeader, thread)], rax);
  if (has_data_) {
    a_.mov(dword[kRecord + offsetof(RecordHeader, probe)], probe_.index);
    a_.mov(eax, dword[rsp + a_.frame().payload_bytes()]);
    a_.mov(dword[kRecord + offsetof(RecordHeader, payload_bytes)], eax);
    if (!fetch_.NeedsLimit()) return;
    a_.lea(rax, ptr[kRecord + rax + kEntryPayload]);
    a_.mov(a_.Slot(a_.frame().limit()), rax);
  } else {
    a_.mov(rax, uint64_t{FixedLength() - kEntryPayload} << 32 | probe_.index);
    a_.mov(ptr[kRecord + offsetof(RecordHeader, probe)], rax);
  }
}

void ProbeBlockEmitter::EmitRecord() {
  EmitHeader();
  if (place_.is_return) {
    fetch_.LoadRegister(lang::Reg::kIp);
    a_.mov(ptr[kRecord + kEntryPayload], rax);
  }
  fetch_.Store();
  a_.mov(ptr[kRecord + offsetof(RecordHeader, commit)], kCommit);
  block_.reserved.back().end = a_.here();
  block_.committed = a_.here();
  a_.jmp(end_, kNear);
  const uint32_t begin = a_.here();
  for (const auto& code : a_.TakeLater())
    code();
  block_.reserved.push_back({.begin = begin, .end = a_.here()});
  for (const auto& code : later_)
    code();
}

void ProbeBlockEmitter::EmitCounting() {
  Label count;
  const auto count_as = [&](Label& label, size_t counter) {
    if (!label.is_used()) return;
    a_.L(label);
    a_.mov(eax, static_cast<uint32_t>(counter));
    a_.jmp(count);
  };
  count_as(oversize_, offsetof(ProbeCounters, oversize));
  count_as(filtered_, offsetof(ProbeCounters, filtered));
  count_as(sampled_out_, offsetof(ProbeCounters, sampled_out));
  count_as(lost_, offsetof(ProbeCounters, lost));
  a_.L(not_recording_);
  a_.cmp(eax, ring::kModeCount);
  a_.jne(end_);
  static_assert(offsetof(ProbeCounters, counted) == 0);
  a_.xor_(eax, eax);
  a_.L(count);
  const SharedMemory& memory = place_.memory;
  a_.mov(rdx, memory.ring + memory.geometry.counters_offset(probe_.index));
  a_.lock();
  a_.inc(qword[rdx + rax]);
}

}  // namespace probed::detour
