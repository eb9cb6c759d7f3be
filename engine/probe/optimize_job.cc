#include "engine/probe/optimize_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/detour/trampoline.h"
#include "engine/probe/displacement.h"
#include "engine/ring/clock.h"
#include "engine/sys/proc.h"
#include "engine/tracee/code_arena.h"

namespace probed::probe {
namespace {

constexpr uint8_t kJumpLength = 5;
constexpr uint8_t kShortJumpLength = 2;

// No address of code takes a longer operand.
constexpr uint64_t kLongestToName = uint64_t{0x7fff} << 32;

Result<std::vector<arch::Instruction>> DecodeAt(const std::vector<arch::Instruction>& region,
                                                RemoteAddr address) {
  std::vector<arch::Instruction> decoded;
  for (const arch::Instruction& instruction : region) {
    PROBED_TRY(auto here, arch::Decode(instruction.code(), address.value));
    address = address + instruction.length;
    decoded.push_back(std::move(here));
  }
  return decoded;
}

// Positions of the entry probes, or of the return probes.
std::vector<size_t> PositionsOf(const Candidate& candidate, bool returning) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < candidate.probes.size(); ++i) {
    if (candidate.probes[i]->is_return() == returning) positions.push_back(i);
  }
  return positions;
}

uint32_t EntryArgumentsOf(const Candidate& candidate) {
  uint32_t arguments = 0;
  for (const auto& probe : candidate.probes)
    arguments = std::max(arguments, probe->definition->entry_arguments);
  return std::min(arguments, ring::kShadowArguments);
}

std::vector<detour::DetourProbe> ProbesOf(const Candidate& candidate, bool returning) {
  std::vector<detour::DetourProbe> probes;
  for (size_t i : PositionsOf(candidate, returning)) {
    const Probe& probe = *candidate.probes[i];
    const ring::Sampling& sampling = candidate.selections[i].sampling;
    const lang::Filter* filter = candidate.selections[i].filter.get();
    probes.push_back({.program = probe.definition->program.get(),
                      .limits = probe.options.limits,
                      .file_base = candidate.site.value - probe.definition->offset,
                      .index = i < candidate.indices.size() ? candidate.indices[i] : 0,
                      .filter = filter != nullptr ? &filter->code : nullptr,
                      .event_id = EventId(probe.id),
                      .sampling = sampling,
                      .seconds_per_tick = sampling.per_second > 0 ? ring::SecondsPerTick() : 0});
  }
  return probes;
}

// "jmp rel32" or "jmp rel8". Nothing: too far.
std::optional<std::vector<uint8_t>> EncodeJump(RemoteAddr from, RemoteAddr to, uint8_t length) {
  auto distance = static_cast<int64_t>(to.value - from.value - length);
  if (length == kShortJumpLength) {
    auto narrow = static_cast<int8_t>(distance);
    if (narrow != distance) return std::nullopt;
    return std::vector<uint8_t>{0xeb, static_cast<uint8_t>(narrow)};
  }
  auto narrow = static_cast<int32_t>(distance);
  if (narrow != distance) return std::nullopt;
  std::vector<uint8_t> code{0xe9, 0, 0, 0, 0};
  std::memcpy(&code[1], &narrow, sizeof narrow);
  return code;
}

// False: a jump does not reach, or would change bytes that have to stay.
bool MakePatches(const Candidate& candidate, Optimization& optimization) {
  RemoteAddr target = candidate.buffer;
  if (candidate.plan.tactic == arch::Tactic::kShortJump) {
    auto jump = EncodeJump(candidate.island, candidate.buffer, kJumpLength);
    if (!jump) return false;
    optimization.patches.push_back({.address = candidate.island,
                                    .original = candidate.island_bytes,
                                    .patched = std::move(*jump)});
    target = candidate.island;
  }
  auto jump = EncodeJump(candidate.site, target, candidate.plan.jump_length);
  if (!jump) return false;
  size_t fixed = candidate.plan.fixed_bytes;
  if (!std::equal(jump->end() - fixed, jump->end(), candidate.site_bytes.end() - fixed))
    return false;
  optimization.patches.push_back(
      {.address = candidate.site, .original = candidate.site_bytes, .patched = std::move(*jump)});
  return true;
}

// The program's own bytes that a jump overwrites, at the site and on the way from it.
std::string TakeBytes(Candidate& candidate, const elf::File& file, LinkAddr site) {
  auto bytes_at = [&](LinkAddr address, size_t count) {
    auto offset = file.ToOffset(address);
    auto bytes = offset ? file.Bytes(*offset, count) : std::vector<uint8_t>{};
    bytes.resize(bytes.size() == count ? count : 0);
    return bytes;
  };
  candidate.site_bytes = bytes_at(site, candidate.plan.jump_length);
  if (candidate.site_bytes.empty()) return "the code ends there";
  if (candidate.plan.tactic != arch::Tactic::kShortJump) return "";
  LinkAddr island{candidate.plan.island};
  candidate.island = RemoteAddr{candidate.site.value + (island.value - site.value)};
  candidate.island_bytes = bytes_at(island, kJumpLength);
  return candidate.island_bytes.empty() ? "the padding cannot be read" : "";
}

tracee::Window WindowOf(const Candidate& candidate, LinkAddr site) {
  if (candidate.plan.tactic != arch::Tactic::kPunned) {
    return tracee::Window::Around(candidate.site);
  }
  uint64_t bias = candidate.site.value - site.value;
  RemoteAddr low{candidate.plan.low + bias};
  return {.low = low, .high = RemoteAddr{candidate.plan.high + bias}, .near = low};
}

// Whole units, so that neighbours can be written together.
constexpr uint32_t RoundUp(uint32_t bytes) {
  constexpr uint32_t kUnit = tracee::CodeArena::kAlignment;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

std::vector<detour::DetourProbe> LongestProbesOf(const Candidate& candidate, bool returning) {
  auto probes = ProbesOf(candidate, returning);
  for (auto& probe : probes)
    probe.index = ring::kMaxProbes - 1;
  return probes;
}

// Sizes of detour and trampoline, or an obstacle.
std::string MeasureCode(Candidate& candidate, const detour::SharedMemory& memory) {
  auto entries = LongestProbesOf(candidate, false);
  auto returns = LongestProbesOf(candidate, true);
  std::vector<uint32_t> indices(returns.size(), ring::kMaxProbes - 1);
  detour::Hijack hijack{.trampoline = kLongestToName,
                        .probes = indices,
                        .arguments = EntryArgumentsOf(candidate),
                        .daemon_trampoline = kLongestToName};
  auto size = detour::MeasureDetour({.site = candidate.site.value,
                                     .buffer = candidate.site.value,
                                     .region = candidate.region,
                                     .probes = entries,
                                     .memory = memory,
                                     .hijack = returns.empty() ? detour::Hijack{} : hijack});
  if (!size.ok()) return size.error().message;
  candidate.detour_size = RoundUp(*size);
  candidate.buffer_size = candidate.detour_size;
  if (returns.empty()) return "";
  auto trampoline = detour::AssembleTrampoline(
      {.function = candidate.site.value, .probes = returns, .memory = memory});
  if (!trampoline.ok()) return trampoline.error().message;
  candidate.buffer_size += RoundUp(static_cast<uint32_t>(trampoline->code.size()));
  return "";
}

std::string PlanOne(Candidate& candidate, const elf::File& file, PatchPlanner& planner) {
  auto link = file.ToLinkAddr(candidate.place.offset);
  if (!link) return "the file does not say where its code is";
  candidate.plan = planner.Plan(file, *link);
  if (candidate.plan.tactic == arch::Tactic::kNone) return candidate.plan.why;
  auto region = DecodeAt(candidate.plan.region, candidate.site);
  if (!region.ok()) return region.error().message;
  candidate.region = std::move(region).value();
  if (auto rule = RuleAgainstDisplacing(file, candidate.region); !rule.empty())
    return std::string(rule.why);
  if (std::string why = TakeBytes(candidate, file, *link); !why.empty()) return why;
  candidate.window = WindowOf(candidate, *link);
  return "";
}

std::shared_ptr<Optimization> MakeOptimization(const Candidate& candidate) {
  auto optimization = std::make_shared<Optimization>();
  optimization->site = candidate.site;
  optimization->buffer = candidate.buffer;
  optimization->buffer_size = candidate.buffer_size;
  optimization->region = candidate.region;
  optimization->probes = candidate.probes;
  optimization->selections = candidate.selections;
  optimization->indices = candidate.indices;
  optimization->entries = PositionsOf(candidate, false);
  optimization->returns = PositionsOf(candidate, true);
  optimization->entry_arguments = EntryArgumentsOf(candidate);
  optimization->trampoline = candidate.buffer + candidate.detour_size;
  return optimization;
}

Status AssembleCode(const Candidate& candidate, Optimization& optimization,
                    const detour::SharedMemory& memory, RemoteAddr daemon_trampoline) {
  auto entries = ProbesOf(candidate, false);
  auto returns = ProbesOf(candidate, true);
  std::vector<uint32_t> indices;
  for (const auto& probe : returns)
    indices.push_back(probe.index);
  detour::Hijack hijack;
  if (!returns.empty()) {
    hijack = {.trampoline = optimization.trampoline.value,
              .probes = indices,
              .arguments = optimization.entry_arguments,
              .daemon_trampoline = daemon_trampoline.value};
    PROBED_TRY(optimization.returning,
               detour::AssembleTrampoline(
                   {.function = candidate.site.value, .probes = returns, .memory = memory}));
  }
  PROBED_TRY(optimization.detour, detour::Assemble({.site = candidate.site.value,
                                                    .buffer = candidate.buffer.value,
                                                    .region = candidate.region,
                                                    .probes = entries,
                                                    .memory = memory,
                                                    .hijack = hijack}));
  return {};
}

}  // namespace

std::vector<tracee::WantedCode> OptimizeJob::WantedBuffers() const {
  std::vector<tracee::WantedCode> wanted;
  for (const Candidate& candidate : candidates) {
    if (candidate.possible()) {
      wanted.push_back(
          {.window = candidate.window, .size = candidate.buffer_size, .place = {}, .refusal = {}});
    }
  }
  return wanted;
}

void OptimizeJob::SetBuffers(std::span<const tracee::WantedCode> buffers) {
  auto answer = buffers.begin();
  for (Candidate& candidate : candidates) {
    if (!candidate.possible()) continue;
    candidate.buffer = answer->place;
    if (answer->refusal) candidate.obstacle = answer->refusal->message;
    ++answer;
  }
}

bool OptimizeJob::HasWork() const {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Candidate& candidate) { return candidate.possible(); });
}

void OptimizeJob::Plan(const AddressSpace& space, FileCache& files, PatchPlanner& planner) {
  std::string root = sys::ProcPath(target.pid, "root");
  for (Candidate& candidate : candidates) {
    if (!candidate.possible()) continue;
    const elf::Module* module = space.map().FindFile(candidate.place.device, candidate.place.inode);
    if (module == nullptr) {
      candidate.obstacle = "its file is not mapped any more";
      continue;
    }
    auto file = files.Open(space.Refer(*module), root);
    candidate.obstacle = file.ok() ? PlanOne(candidate, **file, planner) : file.error().message;
  }
}

void OptimizeJob::Measure() {
  for (Candidate& candidate : candidates) {
    if (candidate.possible()) candidate.obstacle = MeasureCode(candidate, memory);
  }
}

void OptimizeJob::Assemble() {
  for (Candidate& candidate : candidates) {
    if (candidate.buffer.value == 0) continue;
    auto optimization = MakeOptimization(candidate);
    Status assembled = AssembleCode(candidate, *optimization, memory, daemon_trampoline);
    if (!assembled.ok()) {
      candidate.obstacle = assembled.error().message;
    } else if (optimization->detour.code.size() > candidate.detour_size ||
               optimization->returning.code.size() >
                   candidate.buffer_size - candidate.detour_size) {
      candidate.obstacle = "its detour is larger than was measured";
    } else if (!MakePatches(candidate, *optimization)) {
      candidate.obstacle = "a jump does not reach its detour";
    }
    candidate.optimization = std::move(optimization);
  }
}

}  // namespace probed::probe
