#include "engine/probe/planner.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "engine/probe/generated_code.h"
#include "engine/probe/judge.h"
#include "engine/probe/shadow_stack.h"

namespace probed::probe {
namespace {

// The bytes at `address` as the program's own: breakpoints and jumps of ours are not shown.
std::vector<uint8_t> ReadOwnCode(ProcessState& state, RemoteAddr address) {
  std::array<std::byte, 15> memory{};
  size_t count = state.process.memory().ReadSome(address, memory);
  std::vector<uint8_t> code(count);
  for (size_t i = 0; i < count; ++i) {
    code[i] = state.sites.OriginalByte(address + i, std::to_integer<uint8_t>(memory[i]));
  }
  return code;
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

}  // namespace

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
  return plan;
}

std::string Planner::Describe(const ProcessState& state, const AddressSpace& space,
                              const elf::Module& module, FileOffset offset) {
  auto file = files_.Open(space.Refer(module), fmt::format("/proc/{}/root", state.id.pid));
  return file.ok() ? DescribePlace(**file, offset) : "";
}

Status Planner::Plan(ProcessState& state, const AddressSpace& space,
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

Status Planner::PlanPlace(ProcessState& state, const AddressSpace& space,
                          const std::shared_ptr<Probe>& probe, const elf::Module& module,
                          FileOffset offset, std::vector<PlannedSite>& found) {
  const lang::Definition& definition = *probe->definition;
  for (RemoteAddr address : AddressSpace::Executable(module, offset)) {
    Site* existing = state.sites.Find(address);
    if (existing != nullptr && existing->Carries(*probe)) continue;
    PROBED_TRY(auto plan, PlanAt(state, address));
    PROBED_RETURN_IF_ERROR(CheckShadowStack(state, *probe, plan.instruction));
    plan.probe = probe;
    plan.place = existing != nullptr && !existing->place().module.empty()
                     ? existing->place()
                     : SitePlace{.module = module.path,
                                 .device = module.device,
                                 .inode = module.inode,
                                 .offset = offset,
                                 .symbol = Describe(state, space, module, offset)};
    if (definition.ref_ctr_offset != 0) {
      plan.reference_counter =
          AddressSpace::Writable(module, FileOffset{definition.ref_ctr_offset});
    }
    found.push_back(std::move(plan));
  }
  return {};
}

Result<PlannedSite> Planner::PlanHook(ProcessState& state, RemoteAddr address, Hook hook) {
  PROBED_TRY(auto plan, PlanAt(state, address));
  plan.hook = hook;
  return plan;
}

}  // namespace probed::probe
