#pragma once
// Puts planned sites into one process, all or none: memory first, then out-of-line copies,
// breakpoints last. One stopped thread is enough, because each breakpoint is one byte; for a large
// request the process may run while copies are made. Tracer thread only.

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/probe/planner.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/code_reservation.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

class Transaction {
 public:
  Transaction(ProcessState& state, std::vector<PlannedSite> plans)
      : state_(state), plans_(std::move(plans)) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // In this order. The process must not execute another program meanwhile; after an error nothing
  // more is to be done. The process runs while it is reserved and built; `stop` is for mappings.
  Status Reserve(const tracee::InOneStop& stop);
  // GiveBack(): instead of the rest.
  void GiveBack() { GiveBack(slots_); }
  Status Build();
  Status Install(tracee::Stopped& stopped);
  // All of that in one stop.
  Status InstallAtOnce(tracee::Stopped& stopped);

 private:
  struct Added {
    Site* site;
    std::shared_ptr<Probe> probe;  // or
    std::optional<Hook> hook;
  };
  // A plan's site, once it is built; null: there is none any more.
  struct Step {
    const PlannedSite* plan;
    Site* site = nullptr;
    bool is_new = false;  // and the journal has it
  };
  struct CopyToWrite {
    RemoteAddr address;
    std::vector<uint8_t> code;
  };

  bool NeedsSite(const PlannedSite& plan) const;
  Status BuildSite(const PlannedSite& plan, const tracee::WantedCode& slot);
  void GiveBack(std::span<const tracee::WantedCode> slots);
  void FindSites();
  Status BuildCopy(Site& site, RemoteAddr slot);
  Status WriteCopies(pid_t stopped_tid);
  Status PrepareTrampoline(tracee::Stopped& stopped);
  void PrepareRescue(tracee::Stopped& stopped);
  Status AttachAll(tracee::Stopped& stopped);
  Status Attach(tracee::CodeMemory& code, const Step& step);
  void Rollback(tracee::Stopped& stopped);

  ProcessState& state_;
  const uint64_t image_ = state_.image;
  const std::vector<PlannedSite> plans_;
  std::vector<Step> steps_;                // one for each plan
  uint64_t changes_ = 0;                   // of the table of sites, as the steps know it
  std::vector<tracee::WantedCode> slots_;  // of new sites, in the order of their steps
  std::vector<CopyToWrite> copies_;
  std::vector<Added> added_;
};

// What the journal says of a site.
JournalRecord RecordOf(const Site& site, std::optional<RemoteAddr> reference_counter);

// Arms or disarms a site according to who wants it now.
Status SyncSite(tracee::CodeMemory& code, Site& site);

}  // namespace probed::probe
