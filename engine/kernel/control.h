#pragma once
// The kernel's probes of this daemon: definitions that were written to tracefs and events that were
// there, switched on in instances of our own. Nothing is in tracefs before the first probe and
// after the last. Thread-safe.

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/drainer.h"
#include "engine/kernel/features.h"
#include "engine/kernel/own_names.h"
#include "engine/kernel/probe.h"
#include "engine/kernel/refusal.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {

// A probe as it is shown.
struct ProbeView {
  event::ProbeId id = 0;
  std::string definition;  // feeding it back recreates the probe
  std::string place;       // symbol, tracepoint or path with offset
  event::SchemaPtr schema;
  bool enabled = false;
  std::string filter;
  std::vector<std::string> triggers;
  std::string reason;  // why its hits have no values
  Counters counters;
};

struct ProbeRequest {
  size_t line = 0;  // as the caller counts
  std::string text;
};

struct ProbeOptions {
  bool enable = true;
  std::string filter = {};  // of every probe; empty or "0": none
  uint32_t max_active = 0;
};

class Control {
 public:
  Control(Owner owner, event::Drainer& drainer, TracefsPlaces places = {});
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  using NextId = std::function<event::ProbeId()>;
  struct Outcome {
    std::vector<ProbeView> probes;
    std::optional<Refusal> refusal;  // then everything is as before
  };
  // All lines or none; the first that the kernel refuses ends it. One line may name several events.
  Outcome Create(const std::vector<ProbeRequest>& requests, const ProbeOptions& options,
                 const NextId& next_id);

  std::vector<ProbeView> List();
  std::optional<ProbeView> Find(event::ProbeId id);
  bool Has(event::ProbeId id);
  // Of those that are ours among `ids`; all or none.
  Status SetEnabled(const std::vector<event::ProbeId>& ids, bool enabled);
  std::optional<Refusal> SetFilter(event::ProbeId id, const std::string& filter);
  // A line of the kernel's trigger files; '!' in front takes one away.
  std::optional<Refusal> WriteTrigger(event::ProbeId id, const std::string& trigger);
  // NO_HISTOGRAMS where this kernel has none.
  Result<std::string> ReadHistogram(event::ProbeId id);
  // The kernel's, with the event's name as it was written.
  Result<std::string> ReadFormat(event::ProbeId id);
  void Delete(const std::vector<event::ProbeId>& ids);

 private:
  using Made = std::vector<std::unique_ptr<Probe>>;

  Status Open();
  Result<View*> OpenView();
  // The first instance in which no probe has the event.
  Result<View*> ViewFor(const KernelName& name, const Made& made);
  std::optional<Refusal> Make(const ProbeRequest& request, const ProbeOptions& options,
                              const NextId& next_id, Made& made);
  std::optional<Refusal> Define(const std::vector<std::string>& tokens, const ProbeOptions& options,
                                event::ProbeId id, Made& made);
  // What the kernel says to one more probe of an event that is there.
  std::optional<Refusal> JudgeAppended(DefinitionLine line,
                                       const std::vector<const Probe*>& others);
  // Those that have been defined under the name of `line`.
  std::vector<const Probe*> OthersOf(const DefinitionLine& line, const Made& made) const;
  // Gives the line a name that is free, in the kernel at least.
  std::optional<Refusal> ChooseName(DefinitionLine& line, const Made& made);
  std::optional<Refusal> Join(const std::string& pattern, const NextId& next_id, Made& made);
  std::optional<Refusal> Start(const ProbeOptions& options, Probe& probe);
  bool IsTaken(const View* view, const KernelName& name, const Made& made) const;
  OwnNames Names(const Made& made) const;
  Profile ReadCounts();
  static ProbeView Describe(const Probe& probe, const Profile& profile);
  static Refusal Unknown();
  void ReadBackDefinitions(const Made& made);
  // Takes probes away, whichever of them needs which.
  void Remove(Made probes);
  void RemoveLeftovers();
  void CloseUnused();

  const Owner owner_;
  event::Drainer& drainer_;
  const TracefsPlaces places_;

  std::mutex mutex_;
  std::optional<Tracefs> tracefs_;
  Features features_;
  std::vector<std::unique_ptr<View>> views_;
  std::map<event::ProbeId, std::unique_ptr<Probe>> probes_;
  // Definitions that something still needs: tried again whenever something goes.
  std::list<Event> leftovers_;
};

}  // namespace probed::kernel
