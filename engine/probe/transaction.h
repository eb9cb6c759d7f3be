#pragma once
// Puts planned sites into one process, all or none: out-of-line copies first, breakpoints last.
// One stopped thread is enough, because each breakpoint is one byte. Tracer thread only.

#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/probe/planner.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

class Transaction {
 public:
  Transaction(tracee::Stopped& stopped, ProcessState& state) : stopped_(stopped), state_(state) {}
  ~Transaction() { Rollback(); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Status Install(const std::vector<PlannedSite>& plans);
  void Commit() { added_.clear(); }

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

  Status PrepareSite(const PlannedSite& plan);
  Status PrepareCopy(Site& site);
  Status WriteCopies();
  Status PrepareTrampoline(RemoteAddr near);
  void PrepareRescue(RemoteAddr near);
  Status Attach(tracee::CodeMemory& code, const PlannedSite& plan);
  void Rollback();

  tracee::Stopped& stopped_;
  ProcessState& state_;
  std::vector<CopyToWrite> copies_;
  std::vector<Added> added_;
};

// What the journal says of a site.
JournalRecord RecordOf(const Site& site, std::optional<RemoteAddr> reference_counter);

// Arms or disarms a site according to who wants it now.
Status SyncSite(tracee::CodeMemory& code, Site& site);

}  // namespace probed::probe
