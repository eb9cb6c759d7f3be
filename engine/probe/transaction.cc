#include "engine/probe/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "engine/detour/trap_handler.h"
#include "engine/probe/trap_signal.h"

namespace probed::probe {

namespace {

// Of a copy in its slot; keeps the alignment.
constexpr size_t kCopyPlace = 16;

// Whoever installs has made jumps breakpoints before, if it could.
Error Displaced(RemoteAddr address) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "BYTES_DISPLACED",
               .message = fmt::format("a jump of ours stands on {:#x}", address.value),
               .hint = "",
               .metadata = {}};
}

}  // namespace

JournalRecord RecordOf(const Site& site, std::optional<RemoteAddr> reference_counter) {
  const auto& instruction = site.instruction();
  JournalRecord record{.kind = JournalRecord::kSite,
                       .address = site.address().value,
                       .other = site.copy_address().value,
                       .extra = reference_counter.value_or(site.reference_counter()).value,
                       .length = instruction.length};
  record.bytes = instruction.bytes;
  return record;
}

Status SyncSite(tracee::CodeMemory& code, Site& site) {
  return site.wanted() ? site.Arm(code) : site.Disarm(code);
}

// The rest of a slot is breakpoints, so that nothing can run off a copy's end. In front of the copy
// stands its mark.
Status Transaction::PrepareCopy(Site& site) {
  constexpr size_t kSlotSize = kCopyPlace + arch::kMaxCopySize;
  auto slot =
      state_.process.arena().Allocate(stopped_, tracee::Window::Around(site.address()), kSlotSize);
  if (!slot.ok()) return std::move(slot).error();
  RemoteAddr place = *slot + kCopyPlace;
  auto copy = arch::BuildCopy(site.instruction(), site.address().value, place.value);
  if (!copy.ok()) {
    state_.process.arena().Free(*slot, kSlotSize);
    return std::move(copy).error();
  }
  std::vector<uint8_t> code(kSlotSize, kBreakpointByte);
  std::memcpy(&code[kCopyPlace - sizeof detour::kCopyMark], &detour::kCopyMark,
              sizeof detour::kCopyMark);
  std::copy(copy->code.begin(), copy->code.end(), code.begin() + kCopyPlace);
  copies_.push_back({.address = *slot, .code = std::move(code)});
  site.set_copy(place, std::move(copy).value());
  return {};
}

Status Transaction::PrepareSite(const PlannedSite& plan) {
  if (state_.sites.FindDisplacing(plan.address) != nullptr) return Displaced(plan.address);
  Site* existing = state_.sites.Find(plan.address);
  if (existing != nullptr) {
    bool unchanged = existing->armed() || existing->instruction().bytes == plan.instruction.bytes;
    if (unchanged) return {};
    state_.sites.Erase(plan.address);  // other code lives here now
  }
  auto site = std::make_unique<Site>(plan.address, plan.place, plan.instruction);
  Status prepared = PrepareCopy(*site);
  if (!prepared.ok() && !site->is_emulated()) return prepared;
  state_.sites.Insert(std::move(site));
  return {};
}

// Neighbouring slots go out in one write: a request may bring thousands.
Status Transaction::WriteCopies() {
  std::sort(copies_.begin(), copies_.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (size_t i = 0; i < copies_.size();) {
    RemoteAddr start = copies_[i].address;
    std::vector<uint8_t> run;
    for (; i < copies_.size() && copies_[i].address == start + run.size(); ++i) {
      run.insert(run.end(), copies_[i].code.begin(), copies_[i].code.end());
    }
    PROBED_RETURN_IF_ERROR(stopped_.WriteMemory(start, std::as_bytes(std::span(run))));
  }
  copies_.clear();
  return {};
}

Status Transaction::PrepareTrampoline(RemoteAddr near) {
  if (state_.trampoline.value != 0) return {};
  auto slot =
      state_.process.arena().Allocate(stopped_, tracee::Window::Around(near), arch::kMaxCopySize);
  if (!slot.ok()) return std::move(slot).error();
  std::vector<uint8_t> code(arch::kMaxCopySize, kBreakpointByte);
  PROBED_RETURN_IF_ERROR(stopped_.WriteMemory(*slot, std::as_bytes(std::span(code))));
  state_.trampoline = *slot;
  return state_.journal.Put({.kind = JournalRecord::kTrampoline, .address = slot->value});
}

// A target in which that is not possible is probed nevertheless.
void Transaction::PrepareRescue(RemoteAddr near) {
  if (!state_.journal.is_kept()) return;
  if (state_.rescue.Prepare(stopped_, state_.journal, near).ok()) InstallRescue(stopped_, state_);
}

Status Transaction::Attach(tracee::CodeMemory& code, const PlannedSite& plan) {
  Site* site = state_.sites.Find(plan.address);
  added_.push_back({.site = site, .probe = plan.probe, .hook = plan.hook});
  PROBED_RETURN_IF_ERROR(state_.journal.Put(RecordOf(*site, plan.reference_counter)));
  if (plan.reference_counter) site->SetReferenceCounter(stopped_, *plan.reference_counter);
  if (plan.probe) site->AddProbe(plan.probe);
  if (plan.hook) site->AddHook(*plan.hook);
  return SyncSite(code, *site);
}

Status Transaction::Install(const std::vector<PlannedSite>& plans) {
  for (const auto& plan : plans) {
    PROBED_RETURN_IF_ERROR(PrepareSite(plan));
    if (plan.probe && plan.probe->hijacks()) {
      PROBED_RETURN_IF_ERROR(PrepareTrampoline(plan.address));
    }
  }
  PROBED_RETURN_IF_ERROR(WriteCopies());
  if (!plans.empty()) PrepareRescue(plans.front().address);
  tracee::CodeMemory code(stopped_);
  for (const auto& plan : plans)
    PROBED_RETURN_IF_ERROR(Attach(code, plan));
  return {};
}

// Sites that nobody wants any more stay in the table, disarmed: see site_table.h.
void Transaction::Rollback() {
  tracee::CodeMemory code(stopped_);
  for (auto added = added_.rbegin(); added != added_.rend(); ++added) {
    if (added->probe) added->site->RemoveProbe(*added->probe);
    if (added->hook) added->site->RemoveHook(*added->hook);
    (void)SyncSite(code, *added->site);
  }
}

}  // namespace probed::probe
