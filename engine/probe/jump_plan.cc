#include "engine/probe/jump_plan.h"

#include <algorithm>
#include <map>
#include <utility>

namespace probed::probe {
namespace {

constexpr char kChanged[] = "it has changed meanwhile";
constexpr char kShared[] = "another probe stands on the bytes that a jump needs";

// The breakpoint is there still.
std::vector<PlannedJump::Expected> ExpectedBy(const Optimization& optimization) {
  std::vector<uint8_t> region;
  region.reserve(optimization.region_end() - optimization.site);
  for (const arch::Instruction& instruction : optimization.region)
    region.insert(region.end(), instruction.code().begin(), instruction.code().end());
  std::vector<PlannedJump::Expected> all{{optimization.site, std::move(region)}};
  for (const CodePatch& patch : optimization.patches) {
    const bool is_in_region =
        patch.address == optimization.site && patch.original.size() <= all.front().bytes.size();
    if (!is_in_region) all.push_back({patch.address, patch.original});
  }
  for (auto& [address, bytes] : all)
    if (address == optimization.site) bytes.front() = kBreakpointByte;
  return all;
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

// A site that is neither wanted nor armed is in nobody's way, but may be soon.
bool HasNeighbours(const SiteTable& sites, const Optimization& optimization) {
  auto is_other = [&](const Site& site) { return site.address() != optimization.site; };
  return sites.FindBetween(optimization.site, optimization.region_end(), is_other) != nullptr ||
         std::any_of(optimization.patches.begin(), optimization.patches.end(),
                     [&](const CodePatch& patch) {
                       RemoteAddr end = patch.address + patch.patched.size();
                       return sites.FindBetween(patch.address, end, is_other) != nullptr;
                     });
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

}  // namespace

bool PlannedJump::IsUnchanged(tracee::CodeMemory& code) const {
  return std::all_of(expected.begin(), expected.end(),
                     [&](const Expected& one) { return code.Holds(one.address, one.bytes); });
}

JumpPlan::JumpPlan(ProcessState& state, std::vector<std::shared_ptr<Optimization>> ready)
    : state_(state), changes_(state.sites.changes()) {
  std::map<RemoteAddr, RemoteAddr> claimed;
  jumps_.reserve(ready.size());
  for (auto& optimization : ready) {
    if (!IsStillWanted(state_.sites.Find(optimization->site), *optimization)) {
      Refuse(*optimization, kChanged);
    } else if (IsShared(state_.sites, *optimization) || !Claim(claimed, *optimization)) {
      Refuse(*optimization, kShared);
    } else {
      Add(std::move(optimization));
    }
  }
}

void JumpPlan::Add(std::shared_ptr<Optimization> optimization) {
  Status written = Journal(*optimization);
  if (!written.ok()) {
    StrikeOut(*optimization);
    return Refuse(*optimization, written.error().message);
  }
  jumps_.push_back({.site = state_.sites.Find(optimization->site),
                    .optimization = optimization,
                    .expected = ExpectedBy(*optimization),
                    .has_neighbours = HasNeighbours(state_.sites, *optimization)});
}

Status JumpPlan::Journal(const Optimization& optimization) {
  for (const CodePatch& patch : optimization.patches) {
    PROBED_RETURN_IF_ERROR(
        state_.journal.PutPatch(optimization.site, patch.address, patch.original, patch.patched));
  }
  return {};
}

void JumpPlan::StrikeOut(const Optimization& optimization) {
  for (const CodePatch& patch : optimization.patches)
    state_.journal.RemovePatch(patch.address, patch.original.size());
}

void JumpPlan::Refuse(const Optimization& optimization, std::string why) {
  state_.Release(optimization);
  Site* site = state_.sites.Find(optimization.site);
  if (site != nullptr) site->set_obstacle(std::move(why));
}

bool JumpPlan::Drop(const std::function<std::string(const PlannedJump&)>& why) {
  return std::erase_if(jumps_, [&](const PlannedJump& jump) {
           std::string obstacle = why(jump);
           if (obstacle.empty()) return false;
           StrikeOut(*jump.optimization);
           if (jump.in_use) {
             jump.site->set_obstacle(std::move(obstacle));
           } else {
             Refuse(*jump.optimization, std::move(obstacle));
           }
           return true;
         }) > 0;
}

void JumpPlan::FindSites() {
  for (PlannedJump& jump : jumps_)
    jump.site = state_.sites.Find(jump.optimization->site);
  changes_ = state_.sites.changes();
}

std::string JumpPlan::ObstacleNow(const PlannedJump& jump, bool is_same) const {
  if (!IsStillWanted(jump.site, *jump.optimization)) return kChanged;
  const bool may_be_shared = !is_same || jump.has_neighbours;
  return may_be_shared && IsShared(state_.sites, *jump.optimization) ? kShared : "";
}

// Looking sites up takes longer than all else, and most of the time the table is as it was.
void JumpPlan::Recheck() {
  const bool is_same = changes_ == state_.sites.changes();
  if (!is_same) FindSites();
  Drop([&](const PlannedJump& jump) { return ObstacleNow(jump, is_same); });
}

void JumpPlan::Finish(const Status& stop) {
  if (changes_ != state_.sites.changes()) FindSites();
  const std::string why = stop.ok() ? kChanged : stop.error().message;
  Drop([&](const PlannedJump& jump) {
    const bool stands = jump.site != nullptr && jump.site->optimization() == jump.optimization;
    return stands ? "" : why;
  });
  for (const PlannedJump& jump : jumps_) {
    jump.site->set_obstacle("");
    state_.sites.Reindex(*jump.site, nullptr);
  }
}

}  // namespace probed::probe
