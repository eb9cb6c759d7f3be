#include "engine/probe/generated_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace probed::probe {
namespace {

Error Refusal(std::string reason, std::string message, std::string hint = "") {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = std::move(hint),
               .metadata = {}};
}

// What is written to it appears in the other mapping, or in another process.
bool IsShared(const AddressSpace& space, const elf::Mapping& mapping) {
  if (mapping.shared) return true;
  const elf::Module* module = space.map().FindFile(mapping.device, mapping.inode);
  return module != nullptr &&
         std::any_of(module->mappings.begin(), module->mappings.end(),
                     [](const auto& other) { return other.shared && other.writable; });
}

// A definition can name what is mapped there, and find it again.
bool IsInFile(const elf::Mapping& mapping) {
  return mapping.inode != 0 && !mapping.deleted;
}

enum class Found : uint8_t {
  kOurs,
  kPatched,   // our breakpoint in front of another operand
  kReplaced,  // bytes that are none of our business
};

std::string_view Mnemonic(const arch::Instruction& instruction) {
  return std::string_view(instruction.text).substr(0, instruction.text.find(' '));
}

// Runtimes fill what they have given up with int3: then the first is not ours either. Behind an
// instruction of one byte its neighbour tells.
bool IsFilled(std::span<const uint8_t> present, std::span<const uint8_t> before, size_t length) {
  size_t size = std::min({std::max<size_t>(length, 2), present.size(), before.size()});
  auto all_traps = [&](std::span<const uint8_t> bytes) {
    return std::all_of(bytes.begin() + 1, bytes.begin() + static_cast<ptrdiff_t>(size),
                       [](uint8_t byte) { return byte == kBreakpointByte; });
  };
  return size > 1 && all_traps(present) && !all_traps(before);
}

Found Compare(const Site& site, std::span<const uint8_t> present) {
  const arch::Instruction& instruction = site.instruction();
  uint8_t first = site.armed() ? kBreakpointByte : instruction.bytes[0];
  if (present.size() < instruction.length || present[0] != first) return Found::kReplaced;
  std::span<const uint8_t> before = site.place().generated;
  if (site.armed() && IsFilled(present, before, instruction.length)) return Found::kReplaced;
  auto behind = instruction.code().subspan(1);
  if (std::equal(behind.begin(), behind.end(), present.begin() + 1)) return Found::kOurs;
  before = before.first(std::min(before.size(), present.size()));
  bool is_patched = site.armed() && IsPatchedBehind(before, present.first(before.size()));
  return is_patched ? Found::kPatched : Found::kReplaced;
}

// As the program knows them, but for the first.
std::vector<uint8_t> ReadPresent(const ProcessState& state, const Site& site) {
  std::vector<uint8_t> present(site.place().generated.size());
  auto bytes = std::as_writable_bytes(std::span(present));
  present.resize(state.process.memory().ReadSome(site.address(), bytes));
  for (size_t i = 1; i < present.size(); ++i) {
    if (present[i] != kBreakpointByte) continue;
    present[i] = state.sites.OriginalByte(site.address() + i, present[i]);
  }
  return present;
}

void Leave(ProcessState& state, Site& site, const std::string& why) {
  for (const auto& probe : site.probes())
    probe->obstacle = why;
  site.Leave(why);
  state.journal.Remove(JournalRecord::kSite, site.address());
  if (state.on_site_gone && !site.probes().empty()) state.on_site_gone(site);
}

// The breakpoint is still ours, the site is to go.
bool Retreat(ProcessState& state, Site& site, std::optional<pid_t> stopped,
             const std::string& why) {
  const auto& memory = state.process.memory();
  bool can_write = stopped || memory.CanWriteRunning();
  std::span<const uint8_t> original(site.instruction().bytes.data(), 1);
  if (site.armed() && !can_write) return true;
  if (site.armed())
    (void)memory.Write(site.address(), std::as_bytes(original), stopped.value_or(state.id.pid));
  Leave(state, site, why);
  return false;
}

bool IsExecutable(const AddressSpace& space, RemoteAddr address) {
  const elf::Mapping* mapping = space.map().At(address);
  return mapping != nullptr && mapping->executable;
}

// All bytes that were seen at the site, breakpoints of ours among them: too many to be there by
// chance.
bool IsCopyOf(const ProcessState& state, const Site& site, std::span<const uint8_t> present) {
  constexpr size_t kEnough = 8;
  std::span<const uint8_t> code = site.place().generated;
  if (code.size() < kEnough || present.size() < code.size()) return false;
  for (size_t i = 1; i < code.size(); ++i) {
    bool is_ours = present[i] == kBreakpointByte && state.sites.Find(site.address() + i) != nullptr;
    if (present[i] != code[i] && !is_ours) return false;
  }
  return true;
}

}  // namespace

bool IsPatchedBehind(std::span<const uint8_t> before, std::span<const uint8_t> present) {
  if (present.size() != before.size() || present[0] != kBreakpointByte) return false;
  if (IsFilled(present, before, before.size())) return false;
  std::vector<uint8_t> now(present.begin(), present.end());
  now[0] = before[0];
  size_t done = 0;
  while (done < before.size()) {
    auto old_one = arch::Decode(before.subspan(done), 0);
    if (!old_one.ok()) break;  // only its beginning was seen
    auto new_one = arch::Decode(std::span<const uint8_t>(now).subspan(done), 0);
    bool is_same = new_one.ok() && new_one->length == old_one->length &&
                   Mnemonic(*new_one) == Mnemonic(*old_one);
    if (!is_same) return false;
    done += old_one->length;
  }
  return done > 0;
}

Status JudgeAddress(const ProcessState& state, const AddressSpace& space, RemoteAddr address) {
  const elf::Mapping* mapping = space.map().At(address);
  std::string place = fmt::format("{:#x} of process {}", address.value, state.id.pid);
  std::string maps = fmt::format("/proc/{}/maps shows what is", state.id.pid);
  if (mapping == nullptr) return Refusal("NOT_MAPPED", place + " is not mapped", maps);
  if (!mapping->executable)
    return Refusal("NOT_EXECUTABLE", place + " is not in executable memory", maps);
  if (state.process.arena().Contains(address))
    return Refusal("OWN_CODE", place + " is code of probed itself");
  if (IsInFile(*mapping)) {
    return Refusal("ADDRESS_IN_FILE", fmt::format("{} is in {}", place, mapping->path),
                   fmt::format("write {}:{:#x}", mapping->path,
                               (mapping->offset + (address - mapping->start)).value));
  }
  if (IsShared(space, *mapping)) {
    return Refusal("MEMORY_SHARED",
                   place + " is in shared memory: a breakpoint would be in every mapping of it");
  }
  return {};
}

std::vector<Site*> GeneratedSites(const ProcessState& state) {
  if (!state.has_generated_sites) return {};
  std::vector<Site*> sites = state.sites.Sorted();
  std::erase_if(sites, [](const Site* site) {
    return !site->is_generated() || site->gone() || (site->probes().empty() && !site->armed());
  });
  return sites;
}

bool StandsStill(ProcessState& state, Site& site, std::optional<pid_t> stopped) {
  if (!site.is_generated()) return true;
  std::vector<uint8_t> present = ReadPresent(state, site);
  switch (Compare(site, present)) {
    case Found::kOurs:
      return true;
    case Found::kPatched:
      return Retreat(state, site, stopped, "the program has changed the instruction's operands");
    case Found::kReplaced:
      Leave(state, site,
            present.empty() ? "the memory is not mapped any more"
                            : "the program has put other code there");
      return false;
  }
  return false;
}

void LookAtGeneratedCode(ProcessState& state, std::optional<pid_t> stopped,
                         const AddressSpace* space) {
  for (Site* site : GeneratedSites(state)) {
    if (!StandsStill(state, *site, stopped) || space == nullptr) continue;
    if (IsExecutable(*space, site->address())) continue;
    (void)Retreat(state, *site, stopped, "the memory is not executable any more");
  }
}

bool MendCopy(const ProcessState& state, RemoteAddr address, pid_t stopped) {
  if (!state.has_generated_sites) return false;
  std::array<uint8_t, 15> bytes{};
  const auto& memory = state.process.memory();
  size_t size = memory.ReadSome(address, std::as_writable_bytes(std::span(bytes)));
  auto present = std::span<const uint8_t>(bytes).first(size);
  if (present.empty() || present[0] != kBreakpointByte) return false;
  for (const Site* site : state.sites.Sorted()) {
    if (!site->is_generated() || site->address() == address || !IsCopyOf(state, *site, present))
      continue;
    std::span<const uint8_t> original(site->instruction().bytes.data(), 1);
    return memory.Write(address, std::as_bytes(original), stopped).ok();
  }
  return false;
}

void LeaveGeneratedCode(ProcessState& state, const std::string& why) {
  for (Site* site : GeneratedSites(state))
    Leave(state, *site, why);
}

}  // namespace probed::probe
