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

Site& SiteTable::Insert(std::unique_ptr<Site> site) {
  Site& inserted = *site;
  if (inserted.has_copy()) by_copy_[inserted.copy_address()] = &inserted;
  sites_[inserted.address()] = std::move(site);
  return inserted;
}

void SiteTable::Erase(RemoteAddr address) {
  auto found = sites_.find(address);
  if (found == sites_.end()) return;
  if (found->second->has_copy()) by_copy_.erase(found->second->copy_address());
  sites_.erase(found);
}

void SiteTable::Clear() {
  by_copy_.clear();
  sites_.clear();
}

std::vector<Site*> SiteTable::Sorted() const {
  std::vector<Site*> sorted;
  sorted.reserve(sites_.size());
  for (const auto& [address, site] : sites_)
    sorted.push_back(site.get());
  std::sort(sorted.begin(), sorted.end(),
            [](const Site* a, const Site* b) { return a->address() < b->address(); });
  return sorted;
}

size_t SiteTable::armed_count() const {
  return static_cast<size_t>(std::count_if(
      sites_.begin(), sites_.end(), [](const auto& entry) { return entry.second->armed(); }));
}

}  // namespace probed::probe
