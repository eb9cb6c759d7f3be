#pragma once
// What a record of an event is to us: the schema of its payload, and how the payload is made of the
// record. Pure.
//
// Events of definitions, however they are attached, have the fields that their definition gave
// them, as types of the definition language. Of any other event:
//   integers, bool, enum   u8..u64 or s8..s64, by size and sign
//   pointers               x64
//   char[]                 string, up to its first NUL
//   integers[N]            an array of them
//   anything else          bytes: structures, numbers of other sizes, dynamic arrays

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/kernel/event_format.h"
#include "engine/lang/schema.h"

namespace probed::kernel {

// Copies a run of numbers from the record to the payload's fixed part.
struct NumberMove {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t size = 0;
};

// Fills a slot of the payload (lang/payload.h).
struct DataMove {
  FormatField::Place place = FormatField::Place::kHere;
  uint32_t from = 0;
  uint32_t size = 0;  // kHere: bytes, 0 up to the record's end
  uint32_t to = 0;
  bool is_text = false;         // ends at a NUL
  bool empty_is_fault = false;  // of probe events, where a string's NUL counts
};

// What a definition is of, which its format does not say.
struct EventOrigin {
  enum class Kind : uint8_t {
    kOther,       // no definition, or one of a program's code
    kKernelCode,  // p, r, f
    kEvent,       // e
  };
  Kind kind = Kind::kOther;
  std::string event = {};  // kEvent: GROUP.EVENT
};

struct EventPlan {
  lang::EventSchema schema;
  std::vector<NumberMove> numbers;
  std::vector<DataMove> data;
  uint32_t least_bytes = 0;     // of a record
  std::vector<size_t> symbols;  // which fields are of type `symbol`
  // Where the record has them, 0: it has not.
  uint32_t ip_offset = 0;
  uint32_t function_offset = 0;
};

// UNSUPPORTED_EVENT_FIELD.
Result<EventPlan> PlanEvent(const std::string& group, const EventFormat& format,
                            const EventOrigin& origin = {});
// Adds the schema's last field, the text (EventSchema::has_text).
void AddText(lang::EventSchema& schema);

// Replaces `payload`; the text is empty. False: the record is not one of this event.
bool MakePayload(const EventPlan& plan, std::span<const std::byte> record,
                 std::vector<std::byte>& payload);
// Of a payload just made, whose schema has_text.
void SetText(const EventPlan& plan, std::string_view text, std::vector<std::byte>& payload);

}  // namespace probed::kernel
