#include "engine/probe/site_table.h"

#include <algorithm>
#include <utility>

namespace probed::probe {

Site* SiteTable::Find(RemoteAddr address) const {
  auto found = sites_.find(address);
  return found == sites_.end() ? nullptr : found->second.get();
}

Site* SiteTable::FindByCopy(RemoteAddr address) const {
  auto after = by_copy_.upper_bound(address);
  if (after == by_copy_.begin()) return nullptr;
  Site* site = std::prev(after)->second;
  return address - site->copy_address() < arch::kMaxCopySize ? site : nullptr;
}

Site* SiteTable::FindByDetour(RemoteAddr ip) const {
  auto after = by_detour_.upper_bound(ip);
  if (after == by_detour_.begin()) return nullptr;
  auto [start, site] = *std::prev(after);
  return start == ip || site->optimization()->InDetour(ip) ? site : nullptr;
}

const Optimization* SiteTable::FindByTrampoline(RemoteAddr ip) const {
  auto after = by_trampoline_.upper_bound(ip);
  if (after == by_trampoline_.begin()) return nullptr;
  const Optimization& optimization = *std::prev(after)->second;
  return optimization.InTrampoline(ip) ? &optimization : nullptr;
}

const Optimization* SiteTable::TrampolineAt(RemoteAddr start) const {
  auto found = by_trampoline_.find(start);
  return found == by_trampoline_.end() ? nullptr : found->second.get();
}

bool SiteTable::AsksAt(RemoteAddr address) const {
  if (by_trampoline_.empty()) return false;
  const Site* site = FindByDetour(address);
  const Optimization* optimization =
      site != nullptr ? site->optimization().get() : FindByTrampoline(address);
  return optimization != nullptr && optimization->AsksAt(address);
}

Site* SiteTable::FindDisplacing(RemoteAddr start, RemoteAddr end) const {
  auto after = displaced_.lower_bound(end);
  if (after == displaced_.begin()) return nullptr;
  const Displaced& displaced = std::prev(after)->second;
  return start < displaced.end ? displaced.site : nullptr;
}

Site* SiteTable::FindBetween(RemoteAddr start, RemoteAddr end,
                             const std::function<bool(const Site&)>& is_meant) const {
  for (auto at = sites_.lower_bound(start); at != sites_.end() && at->first < end; ++at) {
    if (is_meant(*at->second)) return at->second.get();
  }
  return nullptr;
}

// Many come in the order of their addresses: the end is the place to look first.
void SiteTable::Reindex(Site& site, const Optimization* before) {
  ++changes_;
  if (before != nullptr) {
    by_detour_.erase(before->buffer);
    if (auto island = before->island()) by_detour_.erase(*island);
    for (const CodePatch& patch : before->patches)
      displaced_.erase(patch.address);
  }
  const Optimization* now = site.optimization().get();
  if (now == nullptr) return;
  by_detour_.insert_or_assign(by_detour_.end(), now->buffer, &site);
  if (auto island = now->island()) by_detour_[*island] = &site;
  if (!now->returns.empty()) by_trampoline_[now->trampoline] = site.optimization();
  for (const CodePatch& patch : now->patches) {
    RemoteAddr end = patch.address + patch.patched.size();
    if (patch.address == site.address()) end = std::max(end, now->region_end());
    displaced_.insert_or_assign(displaced_.end(), patch.address,
                                Displaced{.end = end, .site = &site});
  }
}

Site& SiteTable::Insert(std::unique_ptr<Site> site) {
  Site& inserted = *site;
  if (inserted.has_copy()) by_copy_[inserted.copy_address()] = &inserted;
  Reindex(inserted, nullptr);
  sites_[inserted.address()] = std::move(site);
  return inserted;
}

void SiteTable::Erase(RemoteAddr address) {
  auto found = sites_.find(address);
  if (found == sites_.end()) return;
  Site& site = *found->second;
  if (site.has_copy()) by_copy_.erase(site.copy_address());
  auto optimization = site.optimization();
  site.ForgetOptimization();
  Reindex(site, optimization.get());
  sites_.erase(found);
}

void SiteTable::Clear() {
  ++changes_;
  by_copy_.clear();
  by_detour_.clear();
  by_trampoline_.clear();
  retired_.clear();
  displaced_.clear();
  sites_.clear();
}

std::vector<Site*> SiteTable::Sorted() const {
  std::vector<Site*> sorted;
  sorted.reserve(sites_.size());
  for (const auto& [address, site] : sites_)
    sorted.push_back(site.get());
  return sorted;
}

std::vector<Site*> SiteTable::Optimized() const {
  std::vector<Site*> optimized;
  for (const auto& [buffer, site] : by_detour_)
    optimized.push_back(site);
  return optimized;
}

uint8_t SiteTable::OriginalByte(RemoteAddr address, uint8_t present) const {
  if (const Site* site = FindDisplacing(address)) {
    return site->optimization()->OriginalByte(address).value_or(present);
  }
  const Site* site = Find(address);
  return site != nullptr && site->armed() ? site->instruction().bytes[0] : present;
}

}  // namespace probed::probe
