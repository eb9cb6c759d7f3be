#pragma once
// The text of what a definition of kernel code or of an event has recorded, as the `trace` file
// shows it: such definitions show names where their print fmt has numbers, or nothing
// (trace_kprobe.c, print_kprobe_event; trace_eprobe.c, print_eprobe_event). One thread at a time.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/event_schema.h"
#include "engine/kernel/place_names.h"
#include "engine/lang/value.h"

namespace probed::kernel {

class ProbeText {
 public:
  // `plan` without the text's field.
  ProbeText(EventPlan plan, EventOrigin origin, std::shared_ptr<PlaceNames> names)
      : plan_(std::move(plan)), origin_(std::move(origin)), names_(std::move(names)) {}

  // "NAME: (PLACE) ARGUMENTS" of a payload just made; valid until the next call.
  std::string_view Print(uint64_t ip, uint64_t function, std::span<const std::byte> payload);

 private:
  void AppendPlace(uint64_t ip, uint64_t function);
  void AppendSymbols(const lang::FieldSchema& field, const lang::Value& value);

  EventPlan plan_;
  EventOrigin origin_;
  std::shared_ptr<PlaceNames> names_;
  std::vector<lang::Value> values_;
  std::string text_;
};

}  // namespace probed::kernel
