#include "engine/probe/optimize_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/probe/displacement.h"
#include "engine/ring/clock.h"
#include "engine/tracee/code_arena.h"

namespace probed::probe {
namespace {

constexpr uint8_t kJumpLength = 5;
constexpr uint8_t kShortJumpLength = 2;

// No ring and no mapping takes longer operands than these.
constexpr detour::SharedMemory kLongestToName{
    .control = uint64_t{0x7fff} << 32,
    .ring = uint64_t{0x7fff} << 32,
    .geometry = {.cpu_count = 1024, .ring_bytes = uint64_t{1} << 30}};

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

std::vector<detour::DetourProbe> ProbesOf(const Candidate& candidate) {
  std::vector<detour::DetourProbe> probes;
  for (size_t i = 0; i < candidate.probes.size(); ++i) {
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

std::string PlanOne(Candidate& candidate, const elf::File& file, PatchPlanner& planner) {
  auto link = file.ToLinkAddr(candidate.place.offset);
  if (!link) return "the file does not say where its code is";
  candidate.plan = planner.Plan(file, *link);
  if (candidate.plan.tactic == arch::Tactic::kNone) return candidate.plan.why;
  auto region = DecodeAt(candidate.plan.region, candidate.site);
  if (!region.ok()) return region.error().message;
  candidate.region = std::move(region).value();
  if (auto rule = RuleAgainstDisplacing(file, candidate.region); !rule.empty()) return rule;
  if (std::string why = TakeBytes(candidate, file, *link); !why.empty()) return why;
  candidate.window = WindowOf(candidate, *link);
  auto probes = ProbesOf(candidate);
  for (auto& probe : probes)
    probe.index = ring::kMaxProbes - 1;
  auto size = detour::MeasureDetour({.site = candidate.site.value,
                                     .buffer = candidate.site.value,
                                     .region = candidate.region,
                                     .probes = probes,
                                     .memory = kLongestToName,
                                     .hijack = {}});
  if (!size.ok()) return size.error().message;
  // Whole units, so that neighbours can be written together.
  constexpr uint32_t kUnit = tracee::CodeArena::kAlignment;
  candidate.buffer_size = (*size + kUnit - 1) / kUnit * kUnit;
  return "";
}

}  // namespace

bool OptimizeJob::HasWork() const {
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Candidate& candidate) { return candidate.possible(); });
}

void OptimizeJob::Plan(const AddressSpace& space, FileCache& files, PatchPlanner& planner) {
  std::string root = fmt::format("/proc/{}/root", target.pid);
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

void OptimizeJob::Assemble() {
  for (Candidate& candidate : candidates) {
    if (candidate.buffer.value == 0) continue;
    auto optimization = std::make_shared<Optimization>();
    optimization->site = candidate.site;
    optimization->buffer = candidate.buffer;
    optimization->buffer_size = candidate.buffer_size;
    optimization->region = candidate.region;
    optimization->probes = candidate.probes;
    optimization->selections = candidate.selections;
    optimization->indices = candidate.indices;
    auto probes = ProbesOf(candidate);
    auto detour = detour::Assemble({.site = candidate.site.value,
                                    .buffer = candidate.buffer.value,
                                    .region = candidate.region,
                                    .probes = probes,
                                    .memory = memory,
                                    .hijack = {}});
    if (!detour.ok()) {
      candidate.obstacle = detour.error().message;
    } else if (detour->code.size() > candidate.buffer_size) {
      candidate.obstacle = "its detour is larger than was measured";
    } else if (!MakePatches(candidate, *optimization)) {
      candidate.obstacle = "a jump does not reach its detour";
    }
    if (detour.ok()) optimization->detour = std::move(detour).value();
    candidate.optimization = std::move(optimization);
  }
}

}  // namespace probed::probe
