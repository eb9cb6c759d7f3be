#include "engine/probe/transaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <unordered_set>

#include "engine/detour/trap_handler.h"
#include "engine/probe/trap_signal.h"

namespace probed::probe {

namespace {

constexpr size_t kCopyPlace = Site::kCopyPlace;
constexpr size_t kSlotSize = Site::kSlotSize;

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

bool Transaction::NeedsSite(const PlannedSite& plan) const {
  const Site* existing = state_.sites.Find(plan.address);
  if (existing == nullptr) return true;
  bool unchanged = !existing->gone() &&
                   (existing->armed() || existing->instruction().bytes == plan.instruction.bytes);
  return !unchanged;  // other code lives there now
}

Status Transaction::Reserve(const tracee::InOneStop& stop) {
  std::unordered_set<RemoteAddr> seen;
  for (const PlannedSite& plan : plans_) {
    const bool is_new = NeedsSite(plan) && seen.insert(plan.address).second;
    steps_.push_back({.plan = &plan, .site = nullptr, .is_new = is_new});
    if (is_new) {
      slots_.push_back({.window = tracee::Window::Around(plan.address),
                        .size = kSlotSize,
                        .place = {},
                        .refusal = {}});
    }
  }
  return tracee::ReserveCode(state_.process.arena(), slots_, stop);
}

// The memory of another program's is not ours to free.
void Transaction::GiveBack(std::span<const tracee::WantedCode> slots) {
  if (state_.image == image_) tracee::FreeCode(state_.process.arena(), slots);
}

// The rest of a slot is breakpoints, so that nothing can run off a copy's end. In front of the copy
// stands its mark.
Status Transaction::BuildCopy(Site& site, RemoteAddr slot) {
  RemoteAddr place = slot + kCopyPlace;
  auto copy = arch::BuildCopy(site.instruction(), site.address().value, place.value);
  if (!copy.ok()) {
    state_.process.arena().Free(slot, kSlotSize);
    return std::move(copy).error();
  }
  std::vector<uint8_t> code(kSlotSize, kBreakpointByte);
  std::memcpy(&code[kCopyPlace - sizeof detour::kCopyMark], &detour::kCopyMark,
              sizeof detour::kCopyMark);
  std::copy(copy->code.begin(), copy->code.end(), code.begin() + kCopyPlace);
  copies_.push_back({.address = slot, .code = std::move(code)});
  site.set_copy(place, std::move(copy).value());
  return {};
}

Status Transaction::BuildSite(const PlannedSite& plan, const tracee::WantedCode& slot) {
  auto site = std::make_unique<Site>(plan.address, plan.place, plan.instruction, plan.code);
  Status built = slot.refusal ? Status(*slot.refusal) : BuildCopy(*site, slot.place);
  if (!built.ok() && !site->is_emulated()) return built;
  Status written = state_.journal.Put(RecordOf(*site, plan.reference_counter));
  if (!written.ok()) {
    if (site->has_copy()) state_.process.arena().Free(site->slot(), kSlotSize);
    return written;
  }
  if (site->is_generated()) state_.has_generated_sites = true;
  state_.sites.Erase(plan.address);
  state_.sites.Insert(std::move(site));
  return {};
}

void Transaction::FindSites() {
  for (Step& step : steps_)
    step.site = state_.sites.Find(step.plan->address);
  changes_ = state_.sites.changes();
}

// While memory was reserved, the program may have come to a place where all of the group's probes
// are armed. What cannot be written now is written in the stop that follows.
Status Transaction::Build() {
  auto slot = slots_.begin();
  for (Step& step : steps_) {
    if (!step.is_new) continue;
    step.is_new = NeedsSite(*step.plan);
    if (!step.is_new) {
      GiveBack({slot, 1});
      ++slot;
      continue;
    }
    Status built = BuildSite(*step.plan, *slot++);
    if (built.ok()) continue;
    GiveBack({slot, slots_.end()});
    return built;
  }
  FindSites();
  if (state_.process.memory().CanWriteRunning()) (void)WriteCopies(0);
  return {};
}

// Neighbouring slots go out in one write: a request may bring thousands.
Status Transaction::WriteCopies(pid_t stopped_tid) {
  std::sort(copies_.begin(), copies_.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (size_t i = 0; i < copies_.size();) {
    RemoteAddr start = copies_[i].address;
    std::vector<uint8_t> run;
    for (; i < copies_.size() && copies_[i].address == start + run.size(); ++i) {
      run.insert(run.end(), copies_[i].code.begin(), copies_[i].code.end());
    }
    auto bytes = std::as_bytes(std::span(run));
    PROBED_RETURN_IF_ERROR(state_.process.memory().Write(start, bytes, stopped_tid));
  }
  copies_.clear();
  return {};
}

Status Transaction::PrepareTrampoline(tracee::Stopped& stopped) {
  auto hijacks = [](const PlannedSite& plan) { return plan.probe && plan.probe->hijacks(); };
  auto first = std::find_if(plans_.begin(), plans_.end(), hijacks);
  if (first == plans_.end() || state_.trampoline.value != 0) return {};
  auto slot = state_.process.arena().Allocate(stopped, tracee::Window::Around(first->address),
                                              arch::kMaxCopySize);
  if (!slot.ok()) return std::move(slot).error();
  std::vector<uint8_t> code(arch::kMaxCopySize, kBreakpointByte);
  PROBED_RETURN_IF_ERROR(stopped.WriteMemory(*slot, std::as_bytes(std::span(code))));
  state_.trampoline = *slot;
  return state_.journal.Put({.kind = JournalRecord::kTrampoline, .address = slot->value});
}

// A target in which that is not possible is probed nevertheless.
void Transaction::PrepareRescue(tracee::Stopped& stopped) {
  if (!state_.journal.is_kept() || plans_.empty()) return;
  Status prepared = state_.rescue.Prepare(stopped, state_.journal, plans_.front().address);
  if (prepared.ok()) InstallRescue(stopped, state_);
}

// While its threads were being stopped the program may have unmapped the code, or the module list
// changed, with which it has been attached already.
Status Transaction::Attach(tracee::CodeMemory& code, const Step& step) {
  const PlannedSite& plan = *step.plan;
  Site* site = step.site;
  if (site == nullptr || (plan.probe && site->Carries(*plan.probe))) return {};
  added_.push_back({.site = site, .probe = plan.probe, .hook = plan.hook});
  if (!step.is_new) {
    PROBED_RETURN_IF_ERROR(state_.journal.Put(RecordOf(*site, plan.reference_counter)));
  }
  if (plan.reference_counter) site->SetReferenceCounter(code.stopped(), *plan.reference_counter);
  if (plan.probe) site->AddProbe(plan.probe);
  if (plan.hook) site->AddHook(*plan.hook);
  return SyncSite(code, *site);
}

Status Transaction::AttachAll(tracee::Stopped& stopped) {
  for (const PlannedSite& plan : plans_)
    if (state_.sites.FindDisplacing(plan.address) != nullptr) return Displaced(plan.address);
  PROBED_RETURN_IF_ERROR(PrepareTrampoline(stopped));
  PROBED_RETURN_IF_ERROR(WriteCopies(stopped.tid()));
  PrepareRescue(stopped);
  if (changes_ != state_.sites.changes()) FindSites();
  tracee::CodeMemory code(stopped);
  for (const Step& step : steps_)
    PROBED_RETURN_IF_ERROR(Attach(code, step));
  return {};
}

Status Transaction::Install(tracee::Stopped& stopped) {
  Status attached = AttachAll(stopped);
  if (!attached.ok()) Rollback(stopped);
  return attached;
}

Status Transaction::InstallAtOnce(tracee::Stopped& stopped) {
  auto stop = [&](const std::function<void(tracee::Stopped&)>& work) -> Status {
    work(stopped);
    return {};
  };
  PROBED_RETURN_IF_ERROR(Reserve(stop));
  PROBED_RETURN_IF_ERROR(Build());
  return Install(stopped);
}

// Sites that nobody wants any more stay in the table, disarmed: see site_table.h.
void Transaction::Rollback(tracee::Stopped& stopped) {
  tracee::CodeMemory code(stopped);
  for (auto added = added_.rbegin(); added != added_.rend(); ++added) {
    if (added->probe) added->site->RemoveProbe(*added->probe);
    if (added->hook) added->site->RemoveHook(*added->hook);
    (void)SyncSite(code, *added->site);
  }
}

}  // namespace probed::probe
