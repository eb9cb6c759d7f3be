#pragma once
// Turns the records of one event into hits. One thread at a time.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/event/ring_source.h"
#include "engine/kernel/event_schema.h"
#include "engine/kernel/print_format.h"
#include "engine/kernel/probe_text.h"
#include "engine/kernel/syscall_text.h"

namespace probed::kernel {

class EventDecoder {
 public:
  // BAD_EVENT_FORMAT, UNSUPPORTED_EVENT_FIELD.
  static Result<EventDecoder> Create(const std::string& group, const std::string& format,
                                     const std::shared_ptr<const Symbols>& symbols);
  // Of a definition whose text has names (ProbeText).
  static Result<EventDecoder> Create(const std::string& group, const std::string& format,
                                     const EventOrigin& origin, std::shared_ptr<PlaceNames> names);

  // Of what PipeReader reads: a hit has its text as the only field.
  static Result<EventDecoder> OfText(const std::string& group, const std::string& format);

  uint16_t id() const { return id_; }
  const event::SchemaPtr& schema() const { return schema_; }

  // Sets what the record says: payload (valid until the next call), schema, address, flags. False:
  // it is none of this event's.
  bool Decode(std::span<const std::byte> record, uint32_t cpu, event::RingHit& hit);

 private:
  EventDecoder() = default;
  std::string_view TextOf(std::span<const std::byte> record, uint32_t cpu,
                          const event::RingHit& hit);
  void Complete();

  uint16_t id_ = 0;
  EventPlan plan_;
  event::SchemaPtr schema_;
  std::unique_ptr<PrintFormat> print_;
  std::optional<SyscallText> syscall_;
  std::optional<ProbeText> probe_text_;
  bool is_text_ = false;
  std::string text_;
  std::vector<std::byte> payload_;
};

}  // namespace probed::kernel
