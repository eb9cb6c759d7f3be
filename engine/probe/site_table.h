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
  // Takes a site whose copy is in place.
  Site& Insert(std::unique_ptr<Site> site);
  void Erase(RemoteAddr address);
  void Clear();
  std::vector<Site*> Sorted() const;  // by address
  size_t size() const { return sites_.size(); }
  size_t armed_count() const;

 private:
  std::unordered_map<RemoteAddr, std::unique_ptr<Site>> sites_;
  std::map<RemoteAddr, Site*> by_copy_;
};

}  // namespace probed::probe
