#include "engine/probe/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "engine/probe/generated_code.h"
#include "engine/probe/judge.h"
#include "engine/probe/shadow_stack.h"
#include "engine/sys/proc.h"

namespace probed::probe {
namespace {

// As other programs may have it mapped, the file itself would change.
Error MappedShared(const elf::Module& module) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "MAPPED_SHARED",
               .message = "the process shares " + module.path + " with its file (MAP_SHARED)",
               .hint = "no probe can stand there without changing the file",
               .metadata = {{"path", module.path}}};
}

bool IsMappedShared(const elf::Module& module, FileOffset offset) {
  return std::any_of(module.mappings.begin(), module.mappings.end(), [&](const auto& mapping) {
    return mapping.executable && mapping.shared && offset >= mapping.offset &&
           offset - mapping.offset < mapping.end - mapping.start;
  });
}

// What to add to link addresses, as each mapping that is left would have it for each segment.
std::set<uint64_t> PossibleBiases(const elf::Module& module, const elf::File& file) {
  std::set<uint64_t> biases;
  for (const auto& mapping : module.mappings) {
    for (const auto& segment : file.segments())
      biases.insert(mapping.start.value + segment.offset.value - mapping.offset.value -
                    segment.address.value);
  }
  return biases;
}

// In memory without a file, at the address at which the file would be (unmapped.h).
std::vector<RemoteAddr> FindCopied(const ProcessState& state, const AddressSpace& space,
                                   const elf::Module& module, const elf::File& file,
                                   FileOffset offset) {
  std::vector<RemoteAddr> found;
  const auto link = file.ToLinkAddr(offset);
  const OwnCode expected = CodeAt(file, offset);
  if (!link || expected.empty()) return found;
  for (uint64_t bias : PossibleBiases(module, file)) {
    const RemoteAddr address{link->value + bias};
    const elf::Mapping* mapping = space.map().At(address);
    if (mapping == nullptr || !mapping->executable || mapping->inode != 0) continue;
    if (ReadOwnCode(state, address) == expected) found.push_back(address);
  }
  return found;
}

std::string RootOf(const ProcessState& state) {
  return sys::ProcPath(state.id.pid, "root");
}

SitePlace PlaceOf(const elf::Module& module, FileOffset offset, const elf::File* file) {
  return {.module = module.path,
          .device = module.device,
          .inode = module.inode,
          .offset = offset,
          .symbol = file != nullptr ? DescribePlace(*file, offset) : ""};
}

std::vector<FileOffset> PlacesOf(const Probe& probe) {
  if (!probe.is_return() || probe.hijacks()) return {FileOffset{probe.definition->offset}};
  std::vector<FileOffset> places;
  for (const uint64_t offset : probe.return_instructions)
    places.push_back(FileOffset{offset});
  return places;
}

// Where generated instructions begin is known of those alone that have a site.
Status CheckOverlap(const ProcessState& state, const PlannedSite& plan) {
  constexpr uint64_t kLongestInstruction = 15;
  RemoteAddr end = plan.address + plan.instruction.length;
  auto overlaps = [&](const Site& site) {
    bool counts = site.address() != plan.address && !site.gone() && !site.probes().empty();
    return counts && site.address() < end && plan.address < site.next();
  };
  Site* other = state.sites.FindBetween(plan.address - kLongestInstruction, end, overlaps);
  if (other == nullptr) return {};
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .reason = "NOT_INSTRUCTION_BOUNDARY",
      .message = fmt::format("{:#x} and {:#x}, which has a probe, are not both the beginning "
                             "of an instruction",
                             plan.address.value, other->address().value),
      .hint = "",
      .metadata = {}};
}

// Found in the file; the program may have other code in its place.
Status CheckReturn(const Probe& probe, const PlannedSite& plan) {
  if (probe.return_instructions.empty() || plan.instruction.is_return) return {};
  return Error{
      .code = ErrorCode::kFailedPrecondition,
      .reason = "FILE_CHANGED",
      .message = fmt::format("there is no ret at {:#x} any more, where the file of the definition "
                             "has one",
                             plan.address.value),
      .hint = "define it again",
      .metadata = {}};
}

bool IsUnreadable(const Status& status) {
  return !status.ok() && status.error().reason == "MEMORY_UNREADABLE";
}

}  // namespace

OwnCode ReadOwnCode(const ProcessState& state, RemoteAddr address) {
  std::array<std::byte, 15> memory{};
  size_t count = state.process.memory().ReadSome(address, memory);
  OwnCode code(count);
  for (size_t i = 0; i < count; ++i) {
    code[i] = state.sites.OriginalByte(address + i, std::to_integer<uint8_t>(memory[i]));
  }
  return code;
}

Result<PlannedSite> Planner::PlanAt(ProcessState& state, RemoteAddr address) {
  auto code = ReadOwnCode(state, address);
  if (code.empty()) {
    return Error{.code = ErrorCode::kFailedPrecondition,
                 .reason = "MEMORY_UNREADABLE",
                 .message = fmt::format("the code at {:#x} cannot be read", address.value),
                 .hint = "",
                 .metadata = {}};
  }
  PROBED_TRY(auto instruction, DecodeForProbe(code, address.value));
  PlannedSite plan;
  plan.address = address;
  plan.instruction = std::move(instruction);
  plan.code = std::move(code);
  return plan;
}

// What cannot be opened any more (deleted, and we may not look through map_files) may be open
// still.
std::shared_ptr<const elf::File> Planner::Open(const ProcessState& state, const AddressSpace& space,
                                               const elf::Module& module, const Probe* probe) {
  auto file = files_.Open(space.Refer(module), RootOf(state));
  if (file.ok()) return *file;
  return probe != nullptr ? probe->file : nullptr;
}

// The program runs, and may have unmapped since what it still had when `space` was read.
Status Planner::Plan(ProcessState& state, const AddressSpace& space,
                     const std::shared_ptr<Probe>& probe, std::vector<PlannedSite>& plans) {
  constexpr int kMostLooks = 8;
  Status planned = PlanIn(state, space, probe, plans);
  for (int i = 0; i < kMostLooks && IsUnreadable(planned); ++i) {
    auto now = AddressSpace::Read(state.id.pid);
    if (!now.ok()) break;
    planned = PlanIn(state, *now, probe, plans);
  }
  return planned;
}

Status Planner::PlanIn(ProcessState& state, const AddressSpace& space,
                       const std::shared_ptr<Probe>& probe, std::vector<PlannedSite>& plans) {
  const lang::Definition& definition = *probe->definition;
  if (definition.process != 0) return PlanInMemory(state, space, probe, plans);
  const elf::Module* module = space.Find(definition);
  if (module == nullptr) return {};
  std::vector<PlannedSite> found;
  for (const FileOffset offset : PlacesOf(*probe))
    PROBED_RETURN_IF_ERROR(PlanPlace(state, space, probe, *module, offset, found));
  std::move(found.begin(), found.end(), std::back_inserter(plans));
  return {};
}

// Of a process's own memory, no copy: a child has the site with the memory.
Status Planner::PlanInMemory(ProcessState& state, const AddressSpace& space,
                             const std::shared_ptr<Probe>& probe, std::vector<PlannedSite>& plans) {
  const lang::Definition& definition = *probe->definition;
  if (definition.process != state.id.pid) return {};
  PROBED_TRY(auto plan, PlanAddress(state, space, RemoteAddr{definition.offset}));
  PROBED_RETURN_IF_ERROR(CheckShadowStack(state, *probe, plan.instruction));
  plan.probe = probe;
  plan.place.module = definition.path;
  plans.push_back(std::move(plan));
  return {};
}

Result<PlannedSite> Planner::PlanAddress(ProcessState& state, const AddressSpace& space,
                                         RemoteAddr address) {
  LookAtGeneratedCode(state, std::nullopt, &space);
  PROBED_RETURN_IF_ERROR(JudgeAddress(state, space, address));
  PROBED_TRY(auto plan, PlanAt(state, address));
  PROBED_RETURN_IF_ERROR(CheckOverlap(state, plan));
  plan.place.module = std::to_string(state.id.pid);
  plan.place.offset = FileOffset{address.value};
  plan.place.generated = ReadOwnCode(state, address);
  return plan;
}

Result<std::vector<RemoteAddr>> Planner::FindPlaces(const ProcessState& state,
                                                    const AddressSpace& space, const Probe& probe,
                                                    const elf::Module& module, FileOffset offset) {
  auto places = AddressSpace::Executable(module, offset);
  if (!places.empty()) return places;
  if (IsMappedShared(module, offset)) return MappedShared(module);
  auto file = Open(state, space, module, &probe);
  return file ? FindCopied(state, space, module, *file, offset) : places;
}

Status Planner::PlanPlace(ProcessState& state, const AddressSpace& space,
                          const std::shared_ptr<Probe>& probe, const elf::Module& module,
                          FileOffset offset, std::vector<PlannedSite>& found) {
  PROBED_TRY(auto addresses, FindPlaces(state, space, *probe, module, offset));
  for (RemoteAddr address : addresses) {
    Site* existing = state.sites.Find(address);
    if (existing != nullptr && existing->Carries(*probe)) continue;
    auto file = Open(state, space, module, probe.get());
    if (file) PROBED_RETURN_IF_ERROR(JudgeSame(*file, *probe));
    PROBED_TRY(auto plan, PlanAt(state, address));
    PROBED_RETURN_IF_ERROR(CheckReturn(*probe, plan));
    PROBED_RETURN_IF_ERROR(CheckShadowStack(state, *probe, plan.instruction));
    plan.probe = probe;
    plan.place = existing != nullptr && !existing->place().module.empty()
                     ? existing->place()
                     : PlaceOf(module, offset, file.get());
    if (probe->definition->ref_ctr_offset != 0) {
      plan.reference_counter =
          FindReferenceCounter(state, space, module, *probe->definition, address, offset);
    }
    found.push_back(std::move(plan));
  }
  return {};
}

std::optional<RemoteAddr> Planner::FindReferenceCounter(const ProcessState& state,
                                                        const AddressSpace& space,
                                                        const elf::Module& module,
                                                        const lang::Definition& definition,
                                                        RemoteAddr site, FileOffset offset) {
  const FileOffset counter{definition.ref_ctr_offset};
  auto file = Open(state, space, module, nullptr);
  auto code = file ? file->ToLinkAddr(offset) : std::nullopt;
  auto data = file ? file->ToLinkAddr(counter) : std::nullopt;
  if (!code || !data) return AddressSpace::Writable(module, counter);
  const RemoteAddr address{site.value + (data->value - code->value)};
  const elf::Mapping* mapping = space.map().At(address);
  bool is_there = mapping != nullptr && mapping->writable && !mapping->shared &&
                  mapping->inode == module.inode &&
                  address - mapping->start == counter.value - mapping->offset.value;
  return is_there ? std::optional(address) : std::nullopt;
}

Result<PlannedSite> Planner::PlanHook(ProcessState& state, RemoteAddr address, Hook hook,
                                      SitePlace place) {
  PROBED_TRY(auto plan, PlanAt(state, address));
  plan.hook = hook;
  plan.place = std::move(place);
  return plan;
}

}  // namespace probed::probe
