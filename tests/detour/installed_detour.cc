#include "tests/detour/installed_detour.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "engine/detour/leave.h"
#include "engine/detour/string_routines.h"

namespace probed::detour::testing {
namespace {

constexpr size_t kCodeBytes = 4 << 20;
constexpr uint64_t kOriginal = 0x1000;
constexpr uint64_t kBuffer = 0x2000;
constexpr size_t kJumpBytes = 5;

struct Installed {
  const Detour* detour;
  uint64_t address;
};
std::vector<Installed> now_installed;
volatile uint64_t fix_up_count = 0;

// What the daemon does when it sees the signal first.
void OnFault(int signal, siginfo_t*, void* context) {
  auto& ip = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  for (const Installed& each : now_installed) {
    auto resume = FixUpAddress(*each.detour, each.address, static_cast<uint64_t>(ip));
    if (!resume) resume = FixUpInRoutines(each.detour->memory.routines, static_cast<uint64_t>(ip));
    if (resume) {
      fix_up_count = fix_up_count + 1;
      ip = static_cast<greg_t>(*resume);
      return;
    }
  }
  ::signal(signal, SIG_DFL);  // and the fault comes again
}

void HandleFaults() {
  static std::byte stack[64 << 10];
  const stack_t alternate{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

std::vector<arch::Instruction> DecodeRegion(std::span<const uint8_t> code, uint64_t address) {
  std::vector<arch::Instruction> region;
  size_t bytes = 0;
  while (bytes < kJumpBytes) {
    auto instruction = arch::Decode(code.subspan(bytes), address + bytes);
    if (!instruction.ok()) std::abort();
    bytes += instruction->length;
    region.push_back(*instruction);
  }
  return region;
}

}  // namespace

Mapping::Mapping(size_t bytes, int extra_protection)
    : data_(
          static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE | extra_protection,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      bytes_(bytes) {
  if (data_ == MAP_FAILED) std::abort();
}

Mapping::~Mapping() {
  ::munmap(data_, bytes_);
}

Memory::Memory(uint64_t ring_bytes)
    : geometry_{.cpu_count = 1, .ring_bytes = ring_bytes},
      control_(geometry_.control_bytes()),
      ring_(geometry_.ring_area_bytes()),
      routines_(TheStringRoutines().code.size(), PROT_EXEC) {
  std::ranges::copy(TheStringRoutines().code, reinterpret_cast<uint8_t*>(routines_.data()));
  SetArmed(static_cast<uint32_t>(::getpid()));
}

SharedMemory Memory::shared() const {
  return {control_.address(), ring_.address(), routines_.address(), geometry_};
}

void Memory::SetArmed(uint32_t word) {
  At<ring::ControlHeader>(control_, 0).armed = word;
}

void Memory::SetMode(uint32_t probe, ring::ProbeMode mode) {
  At<ring::ProbeControl>(control_, geometry_.control_offset(probe)).mode = mode;
}

void Memory::SetTail(uint64_t tail) {
  At<ring::RingTail>(control_, geometry_.tail_offset(0)).tail = tail;
}

void Memory::SetHead(uint64_t head) {
  At<ring::RingHeader>(ring_, geometry_.head_offset(0)).head = head;
}

uint64_t Memory::head() const {
  return At<ring::RingHeader>(ring_, geometry_.head_offset(0)).head;
}

const ring::ProbeCounters& Memory::counters(uint32_t probe) const {
  return At<ring::ProbeCounters>(ring_, geometry_.counters_offset(probe));
}

void Memory::StartSampling(uint32_t probe, uint32_t second) {
  At<ring::ProbeCounters>(ring_, geometry_.counters_offset(probe)).sampling = {
      .skip = 0, .window = uint64_t{second} << 32};
}

ring::ShadowStack& Memory::shadow_stack() {
  return At<ring::ShadowStack>(ring_, geometry_.shadow_offset(0));
}

void Memory::SetThreadKnown(bool known) {
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  // Behind another one, which the search has to pass.
  uint32_t entry = ring::ThreadHash(thread);
  At<ring::ThreadEntry>(control_, geometry_.thread_offset(entry)).thread =
      ring::ThreadEntry::kRemoved;
  entry = (entry + 1) % ring::kThreadEntries;
  At<ring::ThreadEntry>(control_, geometry_.thread_offset(entry)) = {
      .thread = known ? thread : ring::ThreadEntry::kFree,
      .shadow_stack = geometry_.shadow_offset(0)};
}

uint64_t Memory::tail() const {
  return At<ring::RingTail>(control_, geometry_.tail_offset(0)).tail;
}

std::vector<Record> Memory::Records() const {
  std::vector<Record> records;
  uint64_t position = tail();
  while (position < head()) {
    const uint64_t in_lap = position & (geometry_.ring_bytes - 1);
    const uint64_t at = geometry_.records_offset(0) + in_lap;
    const auto commit = At<uint64_t>(ring_, at);
    const uint64_t length = (commit & 0xffff) * ring::kRecordAlignment;
    if (length == 0 || commit != ring::CommitWord(position, length)) break;
    Record record{.position = position, .length = length, .header = {}, .payload = {}};
    std::memcpy(&record.header, ring_.data() + at, std::min(length, sizeof(record.header)));
    const std::byte* const payload = ring_.data() + at + sizeof(record.header);
    if (record.header.probe < ring::kMaxProbes)
      record.payload.assign(payload, payload + record.header.payload_bytes);
    records.push_back(record);
    position += length;
  }
  return records;
}

std::vector<Record> Memory::TakeRecords() {
  std::vector<Record> records = Records();
  if (!records.empty()) SetTail(records.back().position + records.back().length);
  return records;
}

FaultScope::FaultScope(const Detour& detour, uint64_t address) {
  HandleFaults();
  now_installed.push_back({&detour, address});
}

FaultScope::~FaultScope() {
  now_installed.pop_back();
}

InstalledDetour::InstalledDetour(Memory& memory, std::span<const DetourProbe> probes,
                                 std::span<const uint8_t> function, bool has_rdpid,
                                 const Hijack& hijack)
    : code_(kCodeBytes, PROT_EXEC) {
  std::memcpy(code_.data(), function.data(), function.size());
  std::memcpy(code_.data() + kOriginal, function.data(), function.size());
  region_ = DecodeRegion(function, site());
  for (const DetourProbe& probe : probes)
    memory.SetMode(probe.index, ring::kModeRecord);
  const DetourRequest request{.site = site(),
                              .buffer = buffer(),
                              .region = region_,
                              .probes = probes,
                              .memory = memory.shared(),
                              .has_rdpid = has_rdpid,
                              .hijack = hijack};
  auto detour = Assemble(request);
  if (!detour.ok()) {
    refusal_ = detour.error().ToString();
    return;
  }
  detour_ = *std::move(detour);
  if (kBuffer + detour_.code.size() > kCodeBytes) std::abort();
  std::memcpy(code_.data() + kBuffer, detour_.code.data(), detour_.code.size());
  const auto distance = static_cast<uint32_t>(kBuffer - kJumpBytes);
  code_.data()[0] = std::byte{0xe9};
  std::memcpy(code_.data() + 1, &distance, sizeof(distance));
  faults_.emplace(detour_, buffer());
}

uint64_t InstalledDetour::buffer() const {
  return code_.address() + kBuffer;
}

uint64_t InstalledDetour::original() const {
  return code_.address() + kOriginal;
}

uint64_t InstalledDetour::fix_ups() {
  return fix_up_count;
}

}  // namespace probed::detour::testing
