#pragma once
// One probe in the kernel: an event of an instance whose records come back as hits. Everything
// about it is undone when it goes. Not thread-safe.

#include <memory>
#include <string>
#include <utility>

#include "engine/event/event.h"
#include "engine/event/packed_hits.h"
#include "engine/kernel/event.h"
#include "engine/kernel/instance.h"
#include "engine/kernel/profile.h"
#include "engine/kernel/stream.h"

namespace probed::kernel {

// An instance and who reads it. Destroyed in reverse: a pipe that is open keeps an instance.
struct View {
  Instance instance;
  std::unique_ptr<Stream> stream;
};

struct Counters {
  uint64_t hits = 0;
  uint64_t recorded = 0;
  uint64_t filtered = 0;
  uint64_t missed = 0;
  uint64_t lost = 0;
};

class Probe {
 public:
  // How its writer knows it.
  struct Shown {
    std::string group, event;
    std::string definition;  // feeding it back recreates the probe
    std::string place;       // symbol, tracepoint or path with offset
    EventOrigin origin = {};
  };

  // Registers with the view's stream; the event is off.
  static Result<std::unique_ptr<Probe>> Create(event::ProbeId id, View& view, Event event,
                                               Shown shown);
  ~Probe();
  // Forgets it and leaves its event, quiet, to be taken away.
  static Event Release(std::unique_ptr<Probe> probe);
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  event::ProbeId id() const { return id_; }
  const View& view() const { return view_; }
  const Shown& shown() const { return shown_; }
  void SetDefinition(std::string definition) { shown_.definition = std::move(definition); }
  const event::SchemaPtr& schema() const { return schema_; }
  Event& event() { return event_; }
  const Event& event() const { return event_; }

  Result<std::string> ReadFormat() const;

  bool enabled() const { return enabled_; }
  Status SetEnabled(bool enabled);
  Status WriteTrigger(const std::string& line);

  // `profile` was read before the stream was flushed.
  Counters Count(const Profile& profile) const;

 private:
  Probe(event::ProbeId id, View& view, Event event, Shown shown);

  const event::ProbeId id_;
  View& view_;
  Event event_;
  Shown shown_;
  event::SchemaPtr schema_;
  bool enabled_ = false;
  // Not every hit was meant to be recorded: what is not is no loss.
  bool selective_ = false;
};

}  // namespace probed::kernel
