#pragma once
// The sites of one process, by address and by copy. Disarmed sites stay: a thread may have hit one
// just before it was disarmed, or be inside its copy. Tracer thread only.

#include <functional>
#include <map>
#include <memory>
#include <set>
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
  // Whose trampoline holds `ip`, or begins there. It may be of a site that was unmapped meanwhile:
  // what it has hijacked still returns to it.
  const Optimization* FindByTrampoline(RemoteAddr ip) const;
  const Optimization* TrampolineAt(RemoteAddr start) const;
  bool AsksAt(RemoteAddr address) const;
  // No slot holds its address any more. A program that has saved its return address elsewhere
  // (swapcontext) may come to it all the same: it stays as a breakpoint.
  void RetireTrampoline(const Optimization& optimization) {
    by_trampoline_.erase(optimization.trampoline);
    retired_.insert(optimization.trampoline);
  }
  // Nothing can return there any more.
  void ForgetTrampoline(const Optimization& optimization) {
    by_trampoline_.erase(optimization.trampoline);
  }
  bool IsRetired(RemoteAddr trampoline) const { return retired_.contains(trampoline); }
  void CopyTrampolines(const SiteTable& parent) {
    by_trampoline_ = parent.by_trampoline_;
    retired_ = parent.retired_;
  }
  // The optimized site that has displaced the instruction at `address`, or whose jump covers it.
  Site* FindDisplacing(RemoteAddr address) const { return FindDisplacing(address, address + 1); }
  // The same for any address from `start` to before `end`.
  Site* FindDisplacing(RemoteAddr start, RemoteAddr end) const;
  // The first site from `start` to before `end` for which `is_meant` says so.
  Site* FindBetween(RemoteAddr start, RemoteAddr end,
                    const std::function<bool(const Site&)>& is_meant) const;
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
  // Grows with every site that comes or goes, or becomes a jump or a breakpoint again.
  uint64_t changes() const { return changes_; }

 private:
  uint64_t changes_ = 0;
  std::map<RemoteAddr, std::unique_ptr<Site>> sites_;
  std::map<RemoteAddr, Site*> by_copy_;
  std::map<RemoteAddr, Site*> by_detour_;
  std::map<RemoteAddr, std::shared_ptr<const Optimization>> by_trampoline_;
  std::set<RemoteAddr> retired_;
  struct Displaced {
    RemoteAddr end;
    Site* site;
  };
  std::map<RemoteAddr, Displaced> displaced_;  // by start; they do not overlap
};

}  // namespace probed::probe
