#pragma once
// Puts planned sites into one process, all or none: memory first, then out-of-line copies,
// breakpoints last. One stopped thread is enough, because each breakpoint is one byte; for a large
// request the process may run while copies are made. Tracer thread only.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/probe/planner.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

class Transaction {
 public:
  Transaction(ProcessState& state, std::vector<PlannedSite> plans)
      : state_(state), plans_(std::move(plans)) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // In this order. The process must not execute another program meanwhile; after an error nothing
  // more is to be done.
  void Reserve(tracee::Stopped& stopped);
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
  struct CopyToWrite {
    RemoteAddr address;
    std::vector<uint8_t> code;
  };

  bool NeedsSite(const PlannedSite& plan) const;
  Status BuildSite(const PlannedSite& plan, std::optional<RemoteAddr> slot);
  Status BuildCopy(Site& site, RemoteAddr slot);
  Status WriteCopies(pid_t stopped_tid);
  Status PrepareTrampoline(tracee::Stopped& stopped);
  void PrepareRescue(tracee::Stopped& stopped);
  Status AttachAll(tracee::Stopped& stopped);
  Status Attach(tracee::CodeMemory& code, const PlannedSite& plan);
  void Rollback(tracee::Stopped& stopped);

  ProcessState& state_;
  const std::vector<PlannedSite> plans_;
  std::vector<std::pair<const PlannedSite*, std::optional<RemoteAddr>>> slots_;  // of new sites
  std::optional<Error> no_memory_;  // why some have none
  std::vector<CopyToWrite> copies_;
  std::vector<Added> added_;
};

// What the journal says of a site.
JournalRecord RecordOf(const Site& site, std::optional<RemoteAddr> reference_counter);

// Arms or disarms a site according to who wants it now.
Status SyncSite(tracee::CodeMemory& code, Site& site);

}  // namespace probed::probe
