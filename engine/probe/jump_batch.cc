#include "engine/probe/jump_batch.h"

#include <algorithm>
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

// A thread that a signal took out of a site's copy comes back to the site, and its hit is not
// counted again: only the breakpoint knows that.
bool JumpBatch::DropInterrupted(JumpPlan& plan) const {
  std::unordered_set<RemoteAddr> sites;
  for (const auto& [tid, thread] : state_.process.threads()) {
    const auto& interrupted = ThreadState::Of(*thread).interrupted;
    if (interrupted) sites.insert(interrupted->site);
  }
  if (sites.empty()) return false;
  return plan.Drop([&](const PlannedJump& jump) {
    return sites.contains(jump.optimization->site) ? "a signal handler is about to return to it"
                                                   : "";
  });
}

// A signal handler that interrupted a thread in the middle of a region returns to bytes of a jump.
bool JumpBatch::DropReturnedTo(JumpPlan& plan) const {
  std::vector<uint64_t> middles;
  for (const PlannedJump& jump : plan.jumps()) {
    RemoteAddr at = jump.optimization->site;
    for (const auto& instruction : jump.optimization->region) {
      if (at != jump.optimization->site) middles.push_back(at.value);
      at = at + instruction.length;
    }
  }
  std::sort(middles.begin(), middles.end());
  auto found = FindOnStacks(threads_, middles);
  if (found.ok() && found->empty()) return false;
  return plan.Drop([&](const PlannedJump& jump) -> std::string {
    if (!found.ok()) return found.error().message;
    const bool returned_to = std::any_of(found->begin(), found->end(), [&](uint64_t address) {
      return RemoteAddr{address} > jump.optimization->site &&
             RemoteAddr{address} < jump.optimization->region_end();
    });
    return returned_to ? "a signal handler may return to bytes of the jump" : "";
  });
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
void JumpBatch::EnterAll(std::vector<PlannedJump>& jumps, tracee::CodeMemory& code) {
  for (tracee::Stopped* thread : threads_) {
    RemoteAddr ip{thread->regs().rip};
    const Site* copied = state_.sites.FindByCopy(ip);
    auto after = std::upper_bound(
        jumps.begin(), jumps.end(), copied != nullptr ? copied->address() : ip,
        [](RemoteAddr at, const PlannedJump& jump) { return at < jump.site->address(); });
    if (after == jumps.begin()) continue;
    PlannedJump& jump = *std::prev(after);
    bool concerned = copied != nullptr ? copied == jump.site : ip < jump.optimization->region_end();
    if (!concerned || !jump.IsUnchanged(code)) continue;
    jump.in_use |= Enter(*thread, *jump.site, *jump.optimization);
  }
}

// One in so many goes on where the other mechanism has left off; seconds are of another clock.
void JumpBatch::SampleByJump(const Optimization& optimization) {
  for (size_t i = 0; i < optimization.indices.size(); ++i) {
    if (optimization.selections[i].sampling.is_needed())
      state_.ring->SetSkip(optimization.indices[i], optimization.probes[i]->sampling_state.skip);
  }
}

void JumpBatch::SampleByTrap(const Optimization& optimization) {
  if (!state_.ring) return;  // of a child that has none of its own
  for (size_t i = 0; i < optimization.indices.size(); ++i)
    optimization.probes[i]->sampling_state.skip = state_.ring->Skip(optimization.indices[i]);
}

Result<bool> JumpBatch::Optimize(JumpPlan& plan) {
  auto is_in_the_way = [&](RemoteAddr ip) {
    if (state_.sites.FindByCopy(ip) != nullptr) return true;
    return std::any_of(plan.jumps().begin(), plan.jumps().end(), [&](const PlannedJump& jump) {
      return ip >= jump.optimization->site && ip < jump.optimization->region_end();
    });
  };
  Status unstopped = CheckUnstopped(is_in_the_way);
  if (!unstopped.ok()) {
    plan.DropAll(unstopped.error().message);
    return std::move(unstopped).error();
  }
  tracee::CodeMemory code(*threads_.front());
  plan.Recheck();
  bool may_change = DropInterrupted(plan);
  may_change |= DropReturnedTo(plan);
  EnterAll(plan.jumps(), code);
  plan.Drop([&](const PlannedJump& jump) -> std::string {
    if (!jump.IsUnchanged(code)) return "the program's code differs from its file";
    Status done = jump.site->Optimize(code, jump.optimization);
    if (!done.ok()) return done.error().message;
    SampleByJump(*jump.optimization);
    return "";
  });
  const bool hijacks = std::ranges::any_of(
      plan.jumps(), [](const PlannedJump& jump) { return !jump.optimization->returns.empty(); });
  for (tracee::Stopped* thread : threads_)
    if (hijacks) thread->AskForItsEnd();
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
