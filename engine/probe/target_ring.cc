#include "engine/probe/target_ring.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "engine/ring/clock.h"
#include "engine/sys/proc.h"
#include "engine/tracee/process.h"

namespace probed::probe {
namespace {

using tracee::SharedMapping;
using Access = SharedMapping::Access;

constexpr uint64_t kMinRingBytes = 64u << 10;

static_assert(offsetof(ring::ControlHeader, armed) == offsetof(sys::RobustNode, owner));

ring::Geometry MakeGeometry(uint64_t bytes) {
  auto cpus = std::bit_ceil(static_cast<uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF))));
  return {.cpu_count = cpus, .ring_bytes = std::bit_ceil(std::max(bytes / cpus, kMinRingBytes))};
}

// What generated code needs of the machine: a counter that is a clock, rdtscp or rdpid, and
// rdfsbase in user mode (AT_HWCAP2 bit 1, Documentation/arch/x86/x86_64/fsgs.rst).
Status CheckMachine() {
  PROBED_RETURN_IF_ERROR(ring::CheckTsc());
  if (!detour::HasRdpid() && !detour::HasRdtscp()) {
    return Error{.code = ErrorCode::kUnimplemented,
                 .reason = "NO_RDTSCP",
                 .message = "this processor does not tell programs which CPU they run on",
                 .hint = "one with RDTSCP or RDPID is needed",
                 .metadata = {}};
  }
  constexpr unsigned long kFsGsBase = 1 << 1;
  if ((::getauxval(AT_HWCAP2) & kFsGsBase) != 0) return {};
  return Error{.code = ErrorCode::kUnimplemented,
               .reason = "NO_FSGSBASE",
               .message = "the kernel does not let programs read their fs base",
               .hint = "Linux 5.9 or newer on a processor with FSGSBASE is needed",
               .metadata = {}};
}

// The target may store anything; a counter that went back is not believed.
uint64_t Since(uint64_t& taken, uint64_t now) {
  uint64_t before = std::exchange(taken, std::max(taken, now));
  return taken - before;
}

// It precedes the payload (layout.h).
bool TakeReturnAddress(event::RingHit& hit) {
  if (hit.payload.size() < sizeof(hit.header.ip)) return false;
  std::memcpy(&hit.header.ip, hit.payload.data(), sizeof(hit.header.ip));
  hit.payload = hit.payload.subspan(sizeof(hit.header.ip));
  return true;
}

uint64_t Load(const uint64_t& shared) {
  return std::atomic_ref(const_cast<uint64_t&>(shared)).load(std::memory_order_relaxed);
}

}  // namespace

TargetRing::TargetRing(event::TargetId id, ring::Geometry geometry, SharedMapping control,
                       SharedMapping records)
    : id_(id),
      name_(sys::ReadComm(id.pid)),
      geometry_(geometry),
      control_(std::move(control)),
      records_(std::move(records)),
      shadows_(geometry, control_.bytes(), records_.bytes()),
      reader_(geometry, control_.bytes(), records_.bytes()) {}

Result<std::shared_ptr<TargetRing>> TargetRing::Map(tracee::Stopped& stopped, event::TargetId id,
                                                    sys::RobustList& watch, ring::Geometry geometry,
                                                    RemoteAddr control_at, RemoteAddr records_at) {
  PROBED_TRY(auto control, SharedMapping::Create(stopped, {.name = "probed-control",
                                                           .size = geometry.control_bytes(),
                                                           .access = Access::kTargetReads,
                                                           .at = control_at}));
  auto records = SharedMapping::Create(stopped, {.name = "probed-ring",
                                                 .size = geometry.ring_area_bytes(),
                                                 .access = Access::kTargetWrites,
                                                 .at = records_at});
  if (!records.ok()) {
    (void)control.Unmap(stopped);
    return std::move(records).error();
  }
  std::shared_ptr<TargetRing> made(
      new TargetRing(id, geometry, std::move(control), std::move(records).value()));
  Status watched = watch.Add(made->armed_word());
  if (!watched.ok()) {
    (void)made->Unmap(stopped);
    return std::move(watched).error();
  }
  made->watch_ = &watch;
  return made;
}

Result<std::shared_ptr<TargetRing>> TargetRing::Create(tracee::Stopped& stopped, event::TargetId id,
                                                       sys::RobustList& watch, uint64_t bytes) {
  PROBED_RETURN_IF_ERROR(CheckMachine());
  return Map(stopped, id, watch, MakeGeometry(bytes), {}, {});
}

Result<std::shared_ptr<TargetRing>> TargetRing::Fork(tracee::Stopped& child,
                                                     event::TargetId id) const {
  PROBED_TRY(auto made, Map(child, id, *watch_, geometry_, control_.remote(), records_.remote()));
  std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_)
    made->slots_.push_back({.probe = slot.probe,
                            .seen = 0,
                            .unwound_by = slot.unwound_by,
                            .taken = {},
                            .claimed = slot.claimed});
  made->free_ = free_;
  for (const Released& released : released_)
    made->Free(released.index);
  auto controls = [](const TargetRing& ring) {
    return reinterpret_cast<ring::ProbeControl*>(ring.control_.bytes().data() +
                                                 ring.geometry_.control_offset(0));
  };
  std::copy_n(controls(*this), slots_.size(), controls(*made));
  return made;
}

void TargetRing::Close() {
  if (watch_ != nullptr) std::exchange(watch_, nullptr)->Remove(armed_word());
}

Status TargetRing::Unmap(tracee::Stopped& stopped) const {
  PROBED_RETURN_IF_ERROR(control_.Unmap(stopped));
  return records_.Unmap(stopped);
}

detour::SharedMemory TargetRing::memory(RemoteAddr routines) const {
  return {.control = control_.remote().value,
          .ring = records_.remote().value,
          .routines = routines.value,
          .geometry = geometry_};
}

sys::RobustNode& TargetRing::armed_word() {
  return *reinterpret_cast<sys::RobustNode*>(control_.bytes().data());
}

ring::ProbeControl& TargetRing::control_of(uint32_t index) {
  return *reinterpret_cast<ring::ProbeControl*>(control_.bytes().data() +
                                                geometry_.control_offset(index));
}

ring::ProbeCounters& TargetRing::counters_of(uint32_t index) {
  return *reinterpret_cast<ring::ProbeCounters*>(records_.bytes().data() +
                                                 geometry_.counters_offset(index));
}

Result<uint32_t> TargetRing::Claim(ProbeOfIndex probe) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (slots_.size() == ring::kMaxProbes) {
      return Error{.code = ErrorCode::kResourceExhausted,
                   .reason = "RING_INDICES_EXHAUSTED",
                   .message = "the process has as many optimized probes as there can be",
                   .hint = "",
                   .metadata = {}};
    }
    free_.insert(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  uint32_t index = free_.extract(free_.begin()).value();
  Slot& slot = slots_[index];
  slot.probe = std::move(probe);
  slot.claimed = true;
  (void)Advance(index);
  counters_of(index).sampling = {};
  return index;
}

void TargetRing::CountUnwoundBy(uint32_t index, uint32_t first) {
  std::lock_guard lock(mutex_);
  slots_[index].unwound_by = first;
  slots_[index].unwound_told = Load(counters_of(first).unwound);
}

void TargetRing::SetMode(uint32_t index, ring::ProbeMode mode) {
  std::atomic_ref(control_of(index).mode).store(mode, std::memory_order_release);
}

void TargetRing::Release(uint32_t index) {
  SetMode(index, ring::kModeOff);
  std::lock_guard lock(mutex_);
  TakeUnwoundOf(index);
  slots_[index].unwound_by.reset();
  released_.push_back({.tsc = ring::ReadTsc(), .index = index});
}

void TargetRing::Free(uint32_t index) {
  TakeLoss(index, untold_);
  slots_[index].claimed = false;
  slots_[index].probe = {};
  free_.insert(index);
}

void TargetRing::OnReadUpTo(uint64_t tsc) {
  threads_.Prune(tsc);
  std::lock_guard lock(mutex_);
  for (; !released_.empty() && released_.front().tsc <= tsc; released_.pop_front())
    Free(released_.front().index);
}

RingCounts TargetRing::TakeCounts(uint32_t index) {
  std::lock_guard lock(mutex_);
  return Advance(index);
}

RingCounts TargetRing::Advance(uint32_t index) {
  Slot& slot = slots_[index];
  const ring::ProbeCounters& shared = counters_of(index);
  return {.recorded = Since(slot.taken.recorded, slot.seen),
          .counted = Since(slot.taken.counted, Load(shared.counted)),
          .filtered = Since(slot.taken.filtered, Load(shared.filtered)),
          .sampled_out = Since(slot.taken.sampled_out, Load(shared.sampled_out)),
          .unwound = Since(slot.taken.unwound, Load(shared.unwound)),
          .lost = Since(slot.taken.lost, Load(shared.lost)),
          .oversize = Since(slot.taken.oversize, Load(shared.oversize)),
          .dropped = Since(slot.taken.dropped, slot.dropped)};
}

uint64_t TargetRing::Skip(uint32_t index) {
  return Load(counters_of(index).sampling.skip);
}

void TargetRing::SetSkip(uint32_t index, uint64_t skip) {
  std::atomic_ref(counters_of(index).sampling.skip).store(skip, std::memory_order_relaxed);
}

uint64_t TargetRing::AdvanceWaiting(uint32_t index, uint64_t now) {
  std::lock_guard lock(mutex_);
  return now - std::exchange(slots_[index].taken.waiting, now);
}

void TargetRing::Abandon(const detour::Location::Reservation& reservation) {
  // The numbers come from the thread's registers: they may be anything.
  auto [cpu, position, length] = reservation;
  bool sane = cpu < geometry_.cpu_count && position % ring::kRecordAlignment == 0 &&
              length % ring::kRecordAlignment == 0 && length >= sizeof(ring::RecordHeader) &&
              length <= ring::kMaxRecordBytes;
  if (!sane) return;
  auto& header = *reinterpret_cast<ring::RecordHeader*>(
      records_.bytes().data() + geometry_.records_offset(cpu) + position % geometry_.ring_bytes);
  header.probe = ring::kAbandonedRecord;
  std::atomic_ref(header.commit)
      .store(ring::CommitWord(position, length), std::memory_order_release);
}

// Names are read when they are first needed: a thread gets its own soon after it starts. One that
// has ended meanwhile has its process's, which may have ended too.
ThreadHistory::Identity TargetRing::FindThread(const ring::RawRecord& record) {
  auto thread = threads_.Find(record.thread, record.tsc);
  if (!thread) {
    if (!unknown_thread_.exchange(true)) on_unknown_thread_();
    thread = {.tid = id_.pid, .comm = {}};
  }
  if (thread->comm[0] != '\0') return *thread;
  std::string name = sys::ReadComm(thread->tid);
  if (name.empty()) name = sys::ReadComm(id_.pid);
  if (name.empty()) name = name_;
  std::copy_n(name.data(), std::min(name.size(), thread->comm.size() - 1), thread->comm.data());
  threads_.Rename(record.thread, record.tsc, thread->comm);
  return *thread;
}

std::vector<event::ProbeId> TargetRing::probes() const {
  std::lock_guard lock(mutex_);
  std::vector<event::ProbeId> probes;
  for (const Slot& slot : slots_)
    if (slot.claimed) probes.push_back(slot.probe.probe);
  return probes;
}

void TargetRing::Count(uint32_t probe) {
  std::lock_guard lock(mutex_);
  if (probe < slots_.size() && slots_[probe].claimed) ++slots_[probe].seen;
}

bool TargetRing::Lose(uint32_t probe) {
  std::lock_guard lock(mutex_);
  if (probe >= slots_.size() || !slots_[probe].claimed) return false;
  ++slots_[probe].dropped;
  return true;
}

void TargetRing::TakeLoss(uint32_t index, std::vector<event::ProbeLoss>& losses) {
  Slot& slot = slots_[index];
  const ring::ProbeCounters& shared = counters_of(index);
  const uint64_t lost = Load(shared.lost) + Load(shared.oversize) + slot.dropped;
  const uint64_t more = Since(slot.told, lost);
  if (more > 0) losses.push_back({.probe = slot.probe.probe, .target = id_, .lost = more});
}

std::vector<event::ProbeLoss> TargetRing::TakeLosses() {
  std::lock_guard lock(mutex_);
  std::vector<event::ProbeLoss> losses = std::exchange(untold_, {});
  for (uint32_t index = 0; index < slots_.size(); ++index)
    if (slots_[index].claimed) TakeLoss(index, losses);
  return losses;
}

void TargetRing::TakeUnwoundOf(uint32_t index) {
  Slot& slot = slots_[index];
  if (!slot.unwound_by) return;
  const uint64_t more = Since(slot.unwound_told, Load(counters_of(*slot.unwound_by).unwound));
  if (more == 0) return;
  untold_unwound_.push_back(
      {.probe = slot.probe.probe, .target = id_, .calls = more, .schema = slot.probe.schema});
}

std::vector<event::UnwoundNotice> TargetRing::TakeUnwound() {
  std::lock_guard lock(mutex_);
  const auto* total =
      reinterpret_cast<const uint64_t*>(records_.bytes().data() + geometry_.unwound_offset());
  if (const uint64_t now = Load(*total); std::exchange(unwound_seen_, now) != now) {
    for (uint32_t index = 0; index < slots_.size(); ++index)
      TakeUnwoundOf(index);
  }
  return std::exchange(untold_unwound_, {});
}

bool TargetRing::Decode(const ring::RawRecord& record, event::RingHit& hit) {
  ThreadHistory::Identity thread = FindThread(record);
  std::lock_guard lock(mutex_);
  if (record.probe >= slots_.size() || !slots_[record.probe].claimed) return false;
  Slot& slot = slots_[record.probe];
  hit.payload = record.payload;
  hit.header.ip = slot.probe.ip;
  if (slot.probe.kind == lang::ProbeKind::kReturn && !TakeReturnAddress(hit)) return false;
  hit.header.probe = slot.probe.probe;
  hit.header.function = slot.probe.ip;
  hit.header.target_start = id_.start_ticks;
  hit.header.pid = id_.pid;
  hit.header.tid = thread.tid;
  hit.header.cpu = static_cast<uint16_t>(record.cpu);
  std::copy(thread.comm.begin(), thread.comm.end(), hit.header.comm);
  hit.schema = slot.probe.schema;
  return true;
}

void TargetRing::OnCorrupt(const Error& error) {
  std::lock_guard lock(mutex_);
  corruption_ = error.message;
}

std::string TargetRing::corruption() const {
  std::lock_guard lock(mutex_);
  return corruption_;
}

}  // namespace probed::probe
