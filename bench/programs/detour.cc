// What a hit costs that is recorded without a trap: a function of this process is called with and
// without a detour on it. Prints "NAME NANOSECONDS" lines: added per call, the median of rounds
// that are measured in turn. `floor` is the least that any such record needs: the clock and one
// atomic operation.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/detour/detour.h"
#include "engine/detour/string_routines.h"
#include "engine/detour/trampoline.h"
#include "engine/lang/definition_set.h"
#include "engine/lang/filter.h"
#include "engine/ring/layout.h"

namespace {

using namespace probed;

constexpr int kRounds = 201;
constexpr int kCalls = 4096;  // a round; what they record fits in the ring
constexpr uint64_t kRingBytes = 1 << 20;
constexpr size_t kBufferOffset = 4096;
constexpr size_t kTrampolineOffset = 3 * 4096;
constexpr size_t kRoutinesOffset = 4 * 4096;
constexpr uint32_t kEntryProbe = 0;
constexpr uint32_t kReturnProbe = 1;
constexpr size_t kJumpBytes = 5;
// endbr64; mov %rdi,%rax; ret
constexpr std::array<uint8_t, 8> kFunction = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x89, 0xf8, 0xc3};

std::byte* Map(size_t bytes, int protection) {
  void* memory =
      ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(memory);
}

class AnyFile : public lang::FileNamespace {
 public:
  lang::FileLookup Lookup(const std::string&) override { return {0, true, 1, 1}; }
  Result<uint64_t> ResolveSymbol(const std::string&, const std::string&, uint64_t) override {
    return uint64_t{0};
  }
};

std::shared_ptr<const lang::Definition> Define(const std::string& kind,
                                               const std::string& arguments) {
  AnyFile files;
  lang::DefinitionSet set(lang::Dialect::kExtended);
  const auto applied = set.Apply(kind + ":bench/hit /bin/x:0x10 " + arguments, files);
  if (!applied.added) std::abort();
  return set.Find(*applied.added);
}

// A function, with a detour unless there are no arguments.
class Function {
 public:
  // With an entry probe and a return probe, where there are arguments for them.
  explicit Function(const char* entry = nullptr, const char* filter = nullptr,
                    const char* exit = nullptr) {
    std::memcpy(code_, kFunction.data(), kFunction.size());
    if (entry == nullptr && exit == nullptr) return;
    std::vector<detour::DetourProbe> probes;
    if (entry != nullptr) probes.push_back(Probe("p", entry, kEntryProbe));
    if (filter != nullptr) {
      filter_ = *lang::CompileFilter(filter, definitions_.front()->schema, {});
      probes.front().filter = &filter_.code;
    }
    Install(probes, exit != nullptr ? PlaceTrampoline(Probe("r", exit, kReturnProbe)) : 0);
  }

  void SetMode(ring::ProbeMode mode, uint32_t index = kEntryProbe) {
    auto* control =
        reinterpret_cast<ring::ProbeControl*>(control_ + geometry_.control_offset(index));
    control->mode = mode;
  }

  double NanosecondsPerCall();
  size_t code_bytes() const { return code_bytes_; }

 private:
  detour::DetourProbe Probe(const char* kind, const char* arguments, uint32_t index);
  uint64_t PlaceTrampoline(const detour::DetourProbe& probe);
  void Install(std::span<const detour::DetourProbe> probes, uint64_t trampoline);
  detour::SharedMemory memory() const {
    return {reinterpret_cast<uint64_t>(control_), reinterpret_cast<uint64_t>(ring_),
            reinterpret_cast<uint64_t>(code_ + kRoutinesOffset), geometry_};
  }

  std::vector<std::shared_ptr<const lang::Definition>> definitions_;
  lang::Filter filter_;
  size_t code_bytes_ = 0;
  const ring::Geometry geometry_{.cpu_count = 16, .ring_bytes = kRingBytes};
  std::byte* const code_ = Map(1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC);
  std::byte* const control_ = Map(geometry_.control_bytes(), PROT_READ | PROT_WRITE);
  std::byte* const ring_ = Map(geometry_.ring_area_bytes(), PROT_READ | PROT_WRITE);
};

detour::DetourProbe Function::Probe(const char* kind, const char* arguments, uint32_t index) {
  definitions_.push_back(Define(kind, arguments));
  SetMode(ring::kModeRecord, index);
  return {.program = definitions_.back()->program.get(), .limits = {}, .index = index};
}

uint64_t Function::PlaceTrampoline(const detour::DetourProbe& probe) {
  const auto thread = reinterpret_cast<uint64_t>(__builtin_thread_pointer());
  auto* entry = reinterpret_cast<ring::ThreadEntry*>(
      control_ + geometry_.thread_offset(ring::ThreadHash(thread)));
  *entry = {.thread = thread, .shadow_stack = geometry_.shadow_offset(0)};
  const auto trampoline = detour::AssembleTrampoline(
      {.function = reinterpret_cast<uint64_t>(code_), .probes = {&probe, 1}, .memory = memory()});
  if (!trampoline.ok()) std::abort();
  const std::vector<uint8_t>& code = trampoline->code;
  std::memcpy(code_ + kTrampolineOffset, code.data(), code.size());
  return reinterpret_cast<uint64_t>(code_ + kTrampolineOffset);
}

void Function::Install(std::span<const detour::DetourProbe> probes, uint64_t trampoline) {
  reinterpret_cast<ring::ControlHeader*>(control_)->armed = static_cast<uint32_t>(::getpid());
  const auto site = reinterpret_cast<uint64_t>(code_);
  std::ranges::copy(detour::TheStringRoutines().code,
                    reinterpret_cast<uint8_t*>(code_ + kRoutinesOffset));
  std::vector<arch::Instruction> region;
  for (size_t at = 0; at < kJumpBytes; at += region.back().length)
    region.push_back(*arch::Decode(std::span(kFunction).subspan(at), site + at));
  const detour::DetourRequest request{.site = site,
                                      .buffer = site + kBufferOffset,
                                      .region = region,
                                      .probes = probes,
                                      .memory = memory(),
                                      .hijack = {.trampoline = trampoline,
                                                 .probes = {&kReturnProbe, 1},
                                                 .arguments = 0,
                                                 .daemon_trampoline = 1}};
  const auto detour = detour::Assemble(request);
  if (!detour.ok()) std::abort();
  std::memcpy(code_ + kBufferOffset, detour->code.data(), detour->code.size());
  code_[0] = std::byte{0xe9};
  const auto distance = static_cast<uint32_t>(kBufferOffset - kJumpBytes);
  std::memcpy(code_ + 1, &distance, sizeof(distance));
  code_bytes_ = detour->code.size();
}

double Function::NanosecondsPerCall() {
  const auto call = reinterpret_cast<uint64_t (*)(uint64_t, const char*)>(code_);
  for (uint32_t cpu = 0; cpu < geometry_.cpu_count; ++cpu) {
    auto* tail = reinterpret_cast<ring::RingTail*>(control_ + geometry_.tail_offset(cpu));
    tail->tail = reinterpret_cast<ring::RingHeader*>(ring_ + geometry_.head_offset(cpu))->head;
  }
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < kCalls; ++i)
    call(i, "Hello world");
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kCalls;
}

double Floor() {
  static uint64_t word = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < kCalls; ++i) {
    uint32_t low, high, cpu;
    asm volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(cpu));
    uint64_t expected = i;
    asm volatile("lock cmpxchg %2, %1" : "+a"(expected), "+m"(word) : "r"(i + 1) : "memory");
    word = i + 1;
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / kCalls;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main() {
  Function plain;
  Function two("number=%di:u64 text=+0(%si):string");
  Function number("number=%di:u64");
  Function filtered("number=%di:u64 text=+0(%si):string", "number == 99999999");
  Function filtered_text("number=%di:u64 text=+0(%si):string", "text == \"Hello work\"");
  Function returns(nullptr, nullptr, "value=$retval:u64");
  Function both("number=%di:u64", nullptr, "value=$retval:u64");
  Function count("number=%di:u64");
  count.SetMode(ring::kModeCount);
  Function off("number=%di:u64");
  off.SetMode(ring::kModeOff);
  Function count_two("number=%di:u64 text=+0(%si):string");
  count_two.SetMode(ring::kModeCount);

  struct Row {
    const char* name;
    Function* function;
    std::vector<double> added;
  };
  std::vector<Row> rows = {{"number_and_string", &two, {}},
                           {"number", &number, {}},
                           {"return", &returns, {}},
                           {"entry_and_return", &both, {}},
                           {"filtered", &filtered, {}},
                           {"filtered_text", &filtered_text, {}},
                           {"count", &count, {}},
                           {"count_string", &count_two, {}},
                           {"off", &off, {}}};
  std::vector<double> floor;
  for (int round = 0; round < kRounds; ++round) {
    const double without = plain.NanosecondsPerCall();
    for (Row& row : rows)
      row.added.push_back(row.function->NanosecondsPerCall() - without);
    floor.push_back(Floor());
  }
  std::printf("floor %.2f\n", Median(floor));
  for (const Row& row : rows)
    std::printf("%s %.2f\n", row.name, Median(row.added));
  std::printf("bytes %zu\n", two.code_bytes());
}
