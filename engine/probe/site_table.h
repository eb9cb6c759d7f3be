#pragma once
// The sites of one process, by address and by copy. Disarmed sites stay: a thread may have hit one
// just before it was disarmed, or be inside its copy. Tracer thread only.

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/probe/site.h"

namespace probed::probe {

class SiteTable {
 public:
  Site* Find(RemoteAddr address) const;
  // The site whose copy holds `address`, the byte behind the copied instruction included.
  Site* FindByCopy(RemoteAddr address) const;
  // The optimized site whose detour, or whose island, holds `ip`.
  Site* FindByDetour(RemoteAddr ip) const;
  // The optimized site that has displaced the instruction at `address`, or whose jump covers it.
  Site* FindDisplacing(RemoteAddr address) const;
  // After a change of Site::optimization(), `before` it and now.
  void Reindex(Site& site, const Optimization* before);
  // Takes a site whose copy is in place.
  Site& Insert(std::unique_ptr<Site> site);
  void Erase(RemoteAddr address);
  void Clear();
  std::vector<Site*> Sorted() const;  // by address
  std::vector<Site*> Optimized() const;
  // The program's own byte at a place that holds `present` now.
  uint8_t OriginalByte(RemoteAddr address, uint8_t present) const;
  size_t size() const { return sites_.size(); }
  size_t armed_count() const;

 private:
  std::unordered_map<RemoteAddr, std::unique_ptr<Site>> sites_;
  std::map<RemoteAddr, Site*> by_copy_;
  std::map<RemoteAddr, Site*> by_detour_;
  struct Displaced {
    RemoteAddr end;
    Site* site;
  };
  std::map<RemoteAddr, Displaced> displaced_;  // by start; they do not overlap
};

}  // namespace probed::probe
