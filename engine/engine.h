#pragma once
// The facade of the engine: everything the daemon may ask for, in plain structs.
// Thread-safe: calls are posted to the tracer thread and wait for its answer.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/event/event.h"
#include "engine/event/hub.h"
#include "engine/lang/definition_set.h"
#include "engine/lang/schema.h"
#include "engine/probe/mechanism.h"
#include "engine/ring/sampling.h"

namespace probed::probe {
class PatchPlanner;
struct JournaledProcess;
}  // namespace probed::probe

namespace probed::engine {

using event::ProbeId;
using event::TargetId;

// What probes in the kernel belong to.
inline constexpr TargetId kKernelTarget{};

// Bytes.
inline constexpr uint32_t kDefaultStringLimit = 4096;

using probe::DetachReport;
using probe::Mechanism;
using probe::MechanismName;
using probe::ProbeCounters;
using probe::ProbeState;

struct ProbeInfo {
  ProbeId id = 0;
  TargetId target;         // the attached target the probe belongs to
  std::string definition;  // read-back line
  std::string path;
  uint64_t offset = 0;
  std::string symbol;  // nearest symbol+off, may be empty
  std::shared_ptr<const lang::EventSchema> schema;
  bool enabled = false;
  std::string filter;                   // as written; empty: none
  std::vector<std::string> triggers{};  // of probes in the kernel, as it shows them
  ring::Sampling sampling{};
  bool at_ret = false;           // it stands on its function's ret instructions
  std::string unseen_returns{};  // how its function is left without them, in words
  // What it was created with, beside its line.
  lang::Dialect dialect = lang::Dialect::kExtended;
  uint32_t max_active = 0;    // 0: the line says it, or nobody
  uint32_t string_limit = 0;  // 0: the default
  bool force = false;
  bool optimize = true;
  ProbeState state = ProbeState::kPending;
  Mechanism mechanism = Mechanism::kNone;
  std::string reason;      // why this mechanism and not a better one, or why pending
  bool undecided = false;  // a jump may still take the breakpoint's place
  ProbeCounters counters;
};

enum class TargetState : uint8_t { kRunning, kExited, kDetached };

struct TargetInfo {
  TargetId id;
  TargetId root;  // == id unless it is a followed child
  std::string executable;
  std::string comm;
  TargetState state = TargetState::kRunning;
  uint32_t threads = 0;
  uint32_t sites = 0;
  uint64_t attach_stop_ns = 0;  // longest time any of its threads was held by the last change
  uint64_t stop_total_ns = 0;
};

struct SiteInfo {
  TargetId target;
  uint64_t address = 0;
  std::string module;
  uint64_t offset = 0;
  std::string symbol;  // symbol+0xoff
  lang::ProbeKind kind = lang::ProbeKind::kEntry;
  bool disabled = false;
  bool gone = false;
  Mechanism mechanism = Mechanism::kNone;
  std::string reason;
  std::vector<ProbeId> probes;  // in the order they run
  uint64_t hits = 0;
};

struct AttachOptions {
  bool follow_children = false;
  // The process has not exec'ed the program yet (probectl run): definitions naming files pend and
  // are planned at exec.
  bool awaiting_exec = false;
  std::chrono::milliseconds deadline{5000};
};

struct LaunchOptions {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // empty = the daemon's
  std::string working_directory;
  uint32_t uid = 0, gid = 0;  // whom to run as
  bool follow_children = true;
};

struct CreateOptions {
  lang::Dialect dialect = lang::Dialect::kExtended;
  bool enable = true;
  bool force = false;  // allow an offset inside an instruction
  bool validate_only = false;
  bool require_armed = false;  // a definition whose file is not mapped is an error, not pending
  uint32_t max_active = 0;     // default for return probes; 0 = built-in
  uint32_t string_limit = kDefaultStringLimit;  // up to 1 MiB
  std::string filter{};                         // of every probe of the request; empty or "0": none
  bool at_ret = false;                          // return probes stand on ret instructions
  bool optimize = true;                         // a jump may take the breakpoint's place
  ring::Sampling sampling{};                    // of hits that pass the filter
  bool in_kernel = false;  // user-side lines, too, become probes of the kernel's
};

struct LineError {
  size_t line = 0;  // index into the request's lines
  Error error;
  lang::Verdict verdict;   // the kernel's view, when the line was refused by the language
  bool in_filter = false;  // the verdict is on the filter
};

struct CreateOutcome {
  std::vector<ProbeInfo> probes;  // all created, in order; those in the kernel last
  std::vector<LineError> errors;  // not empty: nothing was changed
};

struct ModuleInfo {
  std::string path;
  std::string build_id;  // hex, may be empty
  uint64_t load_bias = 0;
  uint64_t start = 0, end = 0;  // mapped range
  bool deleted = false;
};

struct SymbolInfo {
  std::string name;  // as in the file
  std::string demangled;
  std::string version;
  std::string module;
  uint64_t offset = 0;   // file offset
  uint64_t address = 0;  // run-time, 0 without a target
  uint64_t size = 0;
  bool ifunc = false;
  std::vector<std::string> aliases;
};

struct SymbolQuery {
  std::optional<TargetId> target;  // else `path` alone
  std::string path;                // module; empty = all modules of the target
  std::string pattern;             // glob
  size_t limit = 1000;
};

// Places of a file whose probes would work the same way.
struct PlanShareInfo {
  Mechanism mechanism = Mechanism::kNone;
  std::string tactic;         // how a jump would replace the instructions; empty: it would not
  std::string rule;           // what forbids a plain five-byte jump
  uint64_t functions = 0;     // entries of exported functions
  uint64_t instructions = 0;  // of all functions
};

struct FileExplanation {
  std::string path;
  std::vector<PlanShareInfo> shares;  // most instructions first
};

struct Explanation {
  std::string path;
  uint64_t offset = 0;
  std::string symbol;
  uint64_t function_size = 0;
  std::string instruction;  // disassembly
  std::string bytes;        // hex
  bool on_boundary = true;
  Mechanism mechanism = Mechanism::kNone;
  std::string reason;
  // What a return probe at this place would be, in words, and one that stands on ret instructions.
  std::string return_probe{}, at_ret{};
};

// How a jump to a detour would replace the instruction, by its code alone.
struct JumpExplanation {
  std::string tactic;               // empty: it must not
  std::vector<std::string> region;  // the instructions that are displaced
  std::string no_jump;              // what forbids a plain five-byte jump
};

struct OptimizationOptions {
  bool enabled = true;              // jumps instead of breakpoints where that is proven safe
  uint64_t ring_bytes = 64u << 20;  // shared with each process that has such jumps
  // How the bytes of a site can become a jump; null: by the analysis of its whole file.
  std::shared_ptr<probe::PatchPlanner> planner;
};

struct EngineOptions {
  uint32_t max_targets = 1024;
  uint32_t max_probes = 200'000;
  OptimizationOptions optimization;
  // An empty file on a memory file system, in which everything is written down that somebody else
  // has to undo if this process dies; -1: none. Not closed.
  int patch_journal = -1;
};

struct SalvageReport {
  uint32_t processes = 0;  // that were alive and had something of ours
  uint32_t sites = 0;
  uint32_t returns = 0;
  std::vector<Error> errors;
};

// Of the kernel's tracefs.
struct KernelSweepReport {
  uint32_t instances = 0;
  uint32_t definitions = 0;
  std::vector<Error> errors;
};

struct EngineInfo {
  std::vector<Mechanism> mechanisms;
  std::vector<std::string> privileges;  // capabilities and Yama scope in words
  EngineOptions limits;
  std::string placement;  // how the tracer waits, chosen by measurement
  uint64_t events_published = 0;
};

// Whether CreateProbes would make one of the lines a probe in the kernel.
bool NamesKernel(TargetId target, const std::vector<std::string>& lines,
                 const CreateOptions& options);

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> Create(const EngineOptions& options);
  ~Engine();  // detaches every target
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Result<TargetInfo> Attach(int pid, AttachOptions options);
  // The program is stopped before its first instruction until Resume().
  Result<TargetInfo> Launch(LaunchOptions options);
  Result<void> Resume(TargetId target);
  Result<DetachReport> Detach(TargetId target);
  std::vector<TargetInfo> ListTargets();
  // Every hit up to now is in the subscriptions' queues when it returns. May take as long as it
  // takes to read full rings.
  void Flush();

  // All lines or none. Deletion lines are refused here; use DeleteProbes. Lines that name kernel
  // code or events of the kernel become probes of kKernelTarget, which `target` may be itself.
  Result<CreateOutcome> CreateProbes(TargetId target, const std::vector<std::string>& lines,
                                     const CreateOptions& options);
  std::vector<ProbeInfo> ListProbes(std::optional<TargetId> target);
  Result<ProbeInfo> GetProbe(ProbeId id);
  Result<void> SetProbesEnabled(const std::vector<ProbeId>& ids, bool enabled);  // all or none
  // Empty or "0": none. Nothing: it is set; else why not, and the probe is as it was.
  std::optional<LineError> SetFilter(ProbeId id, const std::string& filter);
  // A line of the kernel's trigger files, for a probe in the kernel; '!' in front takes one away.
  std::optional<LineError> WriteTrigger(ProbeId id, const std::string& trigger);
  // What the hist triggers of a probe in the kernel have counted, as the kernel shows it.
  Result<std::string> ReadHistogram(ProbeId id);
  // What its records are made of, as a format file of the kernel's.
  Result<std::string> ReadFormat(ProbeId id);
  Result<void> DeleteProbes(const std::vector<ProbeId>& ids);  // all or none

  std::vector<SiteInfo> ListSites(std::optional<TargetId> target);
  Result<std::vector<ModuleInfo>> ListModules(TargetId target);
  Result<std::vector<SymbolInfo>> SearchSymbols(const SymbolQuery& query);
  // `location` is path:0xOFFS or path:symbol[+off], or pid:0xADDRESS of `target`.
  Result<Explanation> Explain(std::optional<TargetId> target, const std::string& location);
  // Reads the whole file's code; part of a second for a large one.
  Result<JumpExplanation> ExplainJump(std::optional<TargetId> target, const std::string& path,
                                      uint64_t offset);
  // The same for every place of the file, counted. Takes seconds for a large one.
  Result<FileExplanation> ExplainFile(std::optional<TargetId> target, const std::string& path);

  // Every site of every target, now and from now on, like the kernel's debug.kprobes-optimization.
  Result<void> SetOptimization(bool enabled);
  bool optimization();

  // The thread that writes to targets. Its end, which may be long before that of a killed process:
  // nothing in targets is changed from then on.
  pid_t tracer() const;
  Result<UniqueFd> TracerEnd();

  // Gives back what the dead writer of a patch journal left in processes, and strikes it out.
  SalvageReport Salvage(int patch_journal);

  // Takes away what dead daemons have left in the kernel's tracefs; nothing where there is none.
  static KernelSweepReport SweepKernel();

  std::unique_ptr<event::Subscription> Subscribe(event::SubscribeOptions options);
  EngineInfo Info();
  // True when the tracer thread answered a no-op within `budget` (for the watchdog).
  bool Healthy(std::chrono::milliseconds budget);

 private:
  // `make_others` runs when all lines are judged, before anything of the target is touched; what
  // errors it adds end the request.
  Result<CreateOutcome> CreateInTarget(
      TargetId target, const std::vector<std::string>& lines, const CreateOptions& options,
      const std::function<void(std::vector<LineError>&)>& make_others);
  Result<DetachReport> SalvageOne(const probe::JournaledProcess& left);

  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace probed::engine
