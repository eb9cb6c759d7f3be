#pragma once
// The events of one tracefs instance as hits of the daemon's stream, in one order with those of the
// user side. Read as raw pages, CPU by CPU (trace_pipe_raw), decoded to typed values, merged by the
// time-stamp counter. Where raw pages are refused, as lines of text (trace_pipe).
//
// A hit of the kernel's has the thread's tid, and as its target the process with a start time of 0,
// so that it is never taken for a hit of an attached target. A pid of 0: the thread was gone before
// it could be asked (or is an idle one, tid 0). comm is then what the kernel remembers
// of that tid, as in its own `trace` file, or "<...>".
//
// Thread-safe.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "engine/event/drainer.h"
#include "engine/kernel/event_decoder.h"
#include "engine/kernel/event_schema.h"

namespace probed::kernel {

class PlaceNames;
class Source;
class Symbols;

class Stream {
 public:
  // Sets the instance's clock to the time-stamp counter, and the size of its rings. The instance
  // has no events yet, and outlives the stream. TSC_UNRELIABLE, KERNEL_RING_REFUSED.
  static Result<std::unique_ptr<Stream>> Open(const std::string& instance_directory,
                                              event::Drainer& drainer);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // `format`: text of events/GROUP/EVENT/format. From now on the event's records are published as
  // `probe`. `group`: the event's group, which a format does not say. `shown`: what it is called to
  // the outside, if not as in the format.
  // BAD_EVENT_FORMAT, UNSUPPORTED_EVENT_FIELD; EVENT_TAKEN: another probe has this event;
  // EVENT_NAME_TAKEN: another has its name, and there is only text.
  Result<event::SchemaPtr> Add(const std::string& group, const std::string& format,
                               event::ProbeId probe, const EventOrigin& origin = {},
                               const std::string& shown = "");
  // The event is off, and still defined: the kernel gives its id to another one later. What it had
  // recorded is published before.
  void Remove(event::ProbeId probe);

  struct Counts {
    uint64_t recorded = 0;  // read from the ring
    uint64_t lost = 0;      // by the ring; of all its events, which cannot be told apart
  };
  Counts CountsOf(event::ProbeId probe) const;
  // Everything recorded before the call is in the subscriptions' queues.
  void Flush();
  // Why hits have their text, but no values; empty: they have both.
  const std::string& text_only() const { return text_only_; }
  // Why nothing more is read.
  Status status() const;

 private:
  Stream(event::Drainer& drainer, std::shared_ptr<Source> source, std::string tracefs,
         std::string text_only);
  Result<EventDecoder> DecoderOf(const std::string& group, const std::string& format,
                                 const EventOrigin& origin);
  std::shared_ptr<const Symbols> SymbolsFor(const std::string& format);

  event::Drainer& drainer_;
  const std::shared_ptr<Source> source_;
  const std::string tracefs_;
  const std::string text_only_;
  const event::SourceId id_;
  std::mutex symbols_lock_;
  std::shared_ptr<const Symbols> symbols_;
  const std::shared_ptr<PlaceNames> places_;  // of the source, which reads on one thread
};

}  // namespace probed::kernel
