#include "engine/probe/jump_batch.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "engine/arch/x86_64/region.h"
#include "engine/probe/routines.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/stack_scan.h"
#include "engine/sys/proc.h"
#include "engine/tracee/thread.h"

namespace probed::probe {
namespace {

// What the detour was built from, and what the jumps overwrite, is what the program has.
bool IsUnchanged(tracee::CodeMemory& code, const Optimization& optimization) {
  std::vector<uint8_t> region;
  region.reserve(optimization.region_end() - optimization.site);
  for (const arch::Instruction& instruction : optimization.region)
    region.insert(region.end(), instruction.code().begin(), instruction.code().end());
  region.front() = kBreakpointByte;
  if (!code.Holds(optimization.site, region)) return false;
  return std::all_of(optimization.patches.begin(), optimization.patches.end(),
                     [&](const CodePatch& patch) {
                       std::vector<uint8_t> expected = patch.original;
                       if (patch.address == optimization.site) expected.front() = kBreakpointByte;
                       return code.Holds(patch.address, expected);
                     });
}

// Of two jumps of one batch that need the same bytes only one can be. False: they are taken.
bool Claim(std::map<RemoteAddr, RemoteAddr>& claimed, const Optimization& optimization) {
  auto is_taken = [&](const CodePatch& patch) {
    auto after = claimed.lower_bound(patch.address + patch.patched.size());
    return after != claimed.begin() && std::prev(after)->second > patch.address;
  };
  const auto& patches = optimization.patches;
  if (std::any_of(patches.begin(), patches.end(), is_taken)) return false;
  for (const CodePatch& patch : patches) {
    claimed.insert_or_assign(claimed.end(), patch.address, patch.address + patch.patched.size());
  }
  return true;
}

// What may not be displaced is somebody else's too.
bool IsShared(const SiteTable& sites, const Optimization& optimization) {
  auto is_taken = [&](RemoteAddr start, RemoteAddr end) {
    auto is_other = [&](const Site& site) {
      return site.address() != optimization.site &&
             (site.armed() || !site.probes().empty() || site.has_hooks());
    };
    return sites.FindBetween(start, end, is_other) != nullptr ||
           sites.FindDisplacing(start, end) != nullptr;
  };
  return is_taken(optimization.site, optimization.region_end()) ||
         std::any_of(optimization.patches.begin(), optimization.patches.end(),
                     [&](const CodePatch& patch) {
                       return is_taken(patch.address, patch.address + patch.patched.size());
                     });
}

bool IsStillWanted(const Site* site, const Optimization& optimization) {
  return site != nullptr && site->armed() && !site->optimization() && !site->has_hooks() &&
         !site->barred() && optimization.Serves(site->probes());
}

bool Hijacks(const Site& site) {
  return site.optimization() && !site.optimization()->returns.empty();
}

bool IsDead(pid_t tid) {
  auto status = sys::ReadTaskStatus(tid);
  return !status.ok() || status->state == 'Z' || status->state == 'X';
}

}  // namespace

Status WriteDetours(const sys::ProcessMemory& memory, pid_t stopped_tid,
                    const std::vector<std::shared_ptr<Optimization>>& ready) {
  std::vector<const Optimization*> sorted;
  for (const auto& optimization : ready)
    sorted.push_back(optimization.get());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->buffer < b->buffer; });
  for (size_t i = 0; i < sorted.size();) {
    RemoteAddr start = sorted[i]->buffer;
    std::vector<uint8_t> run;
    for (; i < sorted.size() && sorted[i]->buffer == start + run.size(); ++i) {
      std::vector<uint8_t> code = sorted[i]->Code();
      run.insert(run.end(), code.begin(), code.end());
    }
    PROBED_RETURN_IF_ERROR(memory.Write(start, std::as_bytes(std::span(run)), stopped_tid));
  }
  return {};
}

// A thread that could not be stopped runs no instruction before it does; where it will do so, the
// kernel tells (/proc/TID/syscall).
Status JumpBatch::CheckUnstopped(const std::function<bool(RemoteAddr)>& is_in_the_way) const {
  for (const auto& [tid, thread] : state_.process.threads()) {
    if (thread->stopped() || thread->gone()) continue;
    auto place = sys::ReadSleepingPlace(tid);
    if ((place.ok() && !is_in_the_way(IpInDetour(*place, state_))) || IsDead(tid)) continue;
    return Error{.code = ErrorCode::kUnavailable,
                 .reason = "THREADS_NOT_STOPPED",
                 .message = "a thread in uninterruptible sleep is where code would change",
                 .hint = "",
                 .metadata = {{"tid", std::to_string(tid)}}};
  }
  return {};
}

void JumpBatch::GiveUp(const std::shared_ptr<Optimization>& optimization, std::string why) {
  state_.Release(*optimization);
  Site* site = state_.sites.Find(optimization->site);
  if (site != nullptr) site->set_obstacle(std::move(why));
}

std::vector<JumpBatch::Ready> JumpBatch::Select(std::vector<std::shared_ptr<Optimization>> ready,
                                                tracee::CodeMemory& code) {
  std::vector<Ready> selected;
  std::map<RemoteAddr, RemoteAddr> claimed;
  for (auto& optimization : ready) {
    Site* site = state_.sites.Find(optimization->site);
    if (!IsStillWanted(site, *optimization)) {
      GiveUp(optimization, "it has changed meanwhile");
    } else if (IsShared(state_.sites, *optimization) || !Claim(claimed, *optimization)) {
      GiveUp(optimization, "another probe stands on the bytes that a jump needs");
    } else if (!IsUnchanged(code, *optimization)) {
      GiveUp(optimization, "the program's code differs from its file");
    } else {
      selected.emplace_back(site, std::move(optimization));
    }
  }
  return selected;
}

// A thread that a signal took out of a site's copy comes back to the site, and its hit is not
// counted again: only the breakpoint knows that.
bool JumpBatch::DropInterrupted(std::vector<Ready>& ready) {
  std::unordered_set<RemoteAddr> sites;
  for (const auto& [tid, thread] : state_.process.threads()) {
    const auto& interrupted = ThreadState::Of(*thread).interrupted;
    if (interrupted) sites.insert(interrupted->site);
  }
  return std::erase_if(ready, [&](const Ready& entry) {
           if (!sites.contains(entry.second->site)) return false;
           GiveUp(entry.second, "a signal handler is about to return to it");
           return true;
         }) > 0;
}

// A signal handler that interrupted a thread in the middle of a region returns to bytes of a jump.
bool JumpBatch::DropReturnedTo(std::vector<Ready>& ready) {
  std::vector<uint64_t> middles;
  for (const auto& [site, optimization] : ready) {
    RemoteAddr at = optimization->site;
    for (const auto& instruction : optimization->region) {
      if (at != optimization->site) middles.push_back(at.value);
      at = at + instruction.length;
    }
  }
  std::sort(middles.begin(), middles.end());
  auto found = FindOnStacks(threads_, middles);
  if (found.ok() && found->empty()) return false;
  return std::erase_if(ready, [&](const Ready& entry) {
           const auto& optimization = entry.second;
           if (!found.ok()) {
             GiveUp(optimization, found.error().message);
             return true;
           }
           bool returned_to = std::any_of(found->begin(), found->end(), [&](uint64_t address) {
             return RemoteAddr{address} > optimization->site &&
                    RemoteAddr{address} < optimization->region_end();
           });
           if (returned_to)
             GiveUp(optimization, "a signal handler may return to bytes of the jump");
           return returned_to;
         }) > 0;
}

// Out of the site's old copy, whose way back leads into the region, and off the bytes that change.
// A hit that was taken by a trap is not taken again. True: the thread goes on in the detour.
bool JumpBatch::Enter(tracee::Stopped& thread, const Site& site, const Optimization& optimization) {
  user_regs_struct regs = thread.regs();
  const bool in_copy = state_.sites.FindByCopy(RemoteAddr{regs.rip}) == &site;
  if (in_copy) {
    arch::LeaveCopy(site.copy(), site.instruction(), site.address().value,
                    site.copy_address().value, regs);
  }
  RemoteAddr ip{regs.rip};
  bool at_start = ip == site.address();
  if (at_start && !in_copy) return false;
  std::optional<uint64_t> place;
  if (at_start) {
    place = optimization.displaced().value;
  } else if (ip > site.address() && ip < optimization.region_end()) {
    place =
        arch::EnterRegionCopy(optimization.detour.region, optimization.displaced().value, ip.value);
  }
  if (place) regs.rip = *place;
  thread.mutable_regs() = regs;
  thread.FlushRegs();
  return place.has_value();
}

// Before a byte is changed: if we die between, displaced instructions do what the program's would.
std::unordered_set<const Site*> JumpBatch::EnterAll(const std::vector<Ready>& selected) {
  std::unordered_set<const Site*> entered;
  for (tracee::Stopped* thread : threads_) {
    RemoteAddr ip{thread->regs().rip};
    const Site* copied = state_.sites.FindByCopy(ip);
    auto after = std::upper_bound(
        selected.begin(), selected.end(), copied != nullptr ? copied->address() : ip,
        [](RemoteAddr at, const Ready& entry) { return at < entry.first->address(); });
    if (after == selected.begin()) continue;
    const auto& [site, optimization] = *std::prev(after);
    bool concerned = copied != nullptr ? copied == site : ip < optimization->region_end();
    if (concerned && Enter(*thread, *site, *optimization)) entered.insert(site);
  }
  return entered;
}

// One in so many goes on where the other mechanism has left off; seconds are of another clock.
void JumpBatch::SampleByJump(const Optimization& optimization) {
  for (size_t i = 0; i < optimization.indices.size(); ++i)
    state_.ring->SetSkip(optimization.indices[i], optimization.probes[i]->sampling_state.skip);
}

void JumpBatch::SampleByTrap(const Optimization& optimization) {
  if (!state_.ring) return;  // of a child that has none of its own
  for (size_t i = 0; i < optimization.indices.size(); ++i)
    optimization.probes[i]->sampling_state.skip = state_.ring->Skip(optimization.indices[i]);
}

Status JumpBatch::Journal(const Optimization& optimization) {
  for (const CodePatch& patch : optimization.patches) {
    PROBED_RETURN_IF_ERROR(
        state_.journal.PutPatch(optimization.site, patch.address, patch.original, patch.patched));
  }
  return {};
}

Result<bool> JumpBatch::Optimize(std::vector<std::shared_ptr<Optimization>> ready) {
  auto is_in_the_way = [&](RemoteAddr ip) {
    if (state_.sites.FindByCopy(ip) != nullptr) return true;
    return std::any_of(ready.begin(), ready.end(), [&](const auto& optimization) {
      return ip >= optimization->site && ip < optimization->region_end();
    });
  };
  Status unstopped = CheckUnstopped(is_in_the_way);
  if (!unstopped.ok()) {
    for (const auto& optimization : ready)
      GiveUp(optimization, unstopped.error().message);
    return std::move(unstopped).error();
  }
  tracee::CodeMemory code(*threads_.front());
  std::vector<Ready> selected = Select(std::move(ready), code);
  bool may_change = DropInterrupted(selected);
  may_change |= DropReturnedTo(selected);
  const auto entered = EnterAll(selected);
  for (const auto& [site, optimization] : selected) {
    Status done = Journal(*optimization);
    if (done.ok()) done = site->Optimize(code, optimization);
    if (done.ok()) {
      site->set_obstacle("");
      SampleByJump(*optimization);
      state_.sites.Reindex(*site, nullptr);
    } else if (entered.contains(site)) {
      site->set_obstacle(done.error().message);  // somebody is in its detour, which stays
    } else {
      GiveUp(optimization, done.error().message);
    }
  }
  return may_change;
}

// To where the program would be; a hit goes on in the copy of the breakpoint, which is back.
void JumpBatch::Leave(tracee::Stopped& thread, Site& site, const EvaluateRest& evaluate) {
  FinishHit(thread, state_, site, evaluate);
  thread.mutable_regs() = WithoutDetour(thread, *site.optimization());
  if (RemoteAddr{thread.regs().rip} == site.address()) {
    thread.mutable_regs().rip = site.copy_address().value;
  }
}

// Frames of returns are taken over while no thread works with them.
void JumpBatch::TakeReturnsOver(const EvaluateRest& evaluate, ReturnHandler& returns) {
  for (tracee::Stopped* thread : threads_) {
    RemoteAddr ip = IpInDetour(*thread, state_);
    Site* site = state_.sites.FindByDetour(ip);
    if (site != nullptr && Hijacks(*site)) FinishHit(*thread, state_, *site, evaluate);
    if (state_.sites.FindByTrampoline(ip) != nullptr)
      (void)returns.LeaveTrampoline(*thread, state_);
  }
  TakeOverAllFrames(state_);
}

Status JumpBatch::Unoptimize(std::span<Site* const> sites, const EvaluateRest& evaluate,
                             ReturnHandler& returns) {
  if (sites.empty()) return {};
  std::unordered_set<const Site*> leaving(sites.begin(), sites.end());
  bool hijacks = std::any_of(sites.begin(), sites.end(), [](auto* site) { return Hijacks(*site); });
  auto is_in_the_way = [&](RemoteAddr ip) {
    if (InRoutines(state_, ip)) return true;
    const Site* site = state_.sites.FindByDetour(ip);
    if (site != nullptr && leaving.contains(site)) return true;
    bool is_hijacking = site != nullptr && Hijacks(*site);
    return hijacks && (is_hijacking || state_.sites.FindByTrampoline(ip) != nullptr);
  };
  PROBED_RETURN_IF_ERROR(CheckUnstopped(is_in_the_way));
  if (hijacks) TakeReturnsOver(evaluate, returns);
  for (tracee::Stopped* thread : threads_) {
    Site* site = state_.sites.FindByDetour(IpInDetour(*thread, state_));
    if (site != nullptr && leaving.contains(site)) Leave(*thread, *site, evaluate);
  }
  tracee::CodeMemory code(*threads_.front());
  std::vector<std::shared_ptr<const Optimization>> undone_jumps;
  Status result;
  for (Site* site : sites) {
    auto optimization = site->optimization();
    if (!optimization) continue;
    Status undone = site->Unoptimize(code);
    if (!undone.ok() && result.ok()) result = std::move(undone);
    if (site->optimization()) continue;
    SampleByTrap(*optimization);
    state_.sites.Reindex(*site, optimization.get());
    state_.Retire(optimization);
    undone_jumps.push_back(std::move(optimization));
  }
  code.Flush();
  for (const auto& optimization : undone_jumps) {  // of what does not stand there any more
    for (const CodePatch& patch : optimization->patches)
      state_.journal.RemovePatch(patch.address, patch.original.size());
  }
  return result;
}

}  // namespace probed::probe
