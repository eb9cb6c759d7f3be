#pragma once
// The jumps of a batch before the process stops for them: what would forbid one is looked for, and
// what would have to be undone is written to the journal, while the program runs. Tracer thread
// only.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/probe/process_state.h"
#include "engine/tracee/code_memory.h"

namespace probed::probe {

struct PlannedJump {
  Site* site;
  std::shared_ptr<Optimization> optimization;
  // What must stand there: the code that the detour was built from, and what the jumps overwrite.
  struct Expected {
    RemoteAddr address;
    std::vector<uint8_t> bytes;
  };
  std::vector<Expected> expected;
  bool IsUnchanged(tracee::CodeMemory& code) const;
  bool has_neighbours = false;  // that are in nobody's way, as yet
  bool in_use = false;          // a thread goes on in its detour, which is kept whatever comes
};

class JumpPlan {
 public:
  // `ready` by address; nothing leads to their detours yet. What cannot become a jump has an
  // obstacle now, and its detour is given back; so it is with all that is dropped later.
  JumpPlan(ProcessState& state, std::vector<std::shared_ptr<Optimization>> ready);

  // By address.
  std::vector<PlannedJump>& jumps() { return jumps_; }
  // Every thread is stopped: drops what other sites have made impossible since.
  void Recheck();
  // Those for which the answer is not empty: it is the obstacle. True: there were some.
  bool Drop(const std::function<std::string(const PlannedJump&)>& why);
  void DropAll(const std::string& why) {
    Drop([&](const PlannedJump&) { return why; });
  }
  // When the process runs again, before anything else happens to it: what has become a jump is
  // found as one, all else is dropped; `stop` may say why.
  void Finish(const Status& stop);

 private:
  void Add(std::shared_ptr<Optimization> optimization);
  void FindSites();
  std::string ObstacleNow(const PlannedJump& jump, bool is_same) const;
  Status Journal(const Optimization& optimization);
  void StrikeOut(const Optimization& optimization);
  void Refuse(const Optimization& optimization, std::string why);

  ProcessState& state_;
  std::vector<PlannedJump> jumps_;
  uint64_t changes_;  // of the table of sites, as the plan knows it
};

}  // namespace probed::probe
