#pragma once
// A record's argument bytes: the fixed part of EventSchema, then string data.
// A string-like element's slot is two little-endian u32: {offset from payload start, length word}.
// Length word: low 31 bits = bytes of data (no NUL), top bit = truncated; the all-ones word
// kFaultSlot = nothing could be read.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/lang/schema.h"
#include "engine/lang/value.h"

namespace probed::lang {

inline constexpr uint32_t kFaultSlot = 0xffffffffu;
inline constexpr uint32_t kTruncatedBit = 0x80000000u;

// Decodes a payload, trusting none of it: out-of-range slots and short payloads are errors.
Result<std::vector<Value>> DecodePayload(const EventSchema& schema,
                                         std::span<const std::byte> payload);
// The same in the place of `values`, whose memory is used again; for whoever decodes many.
Status DecodePayload(const EventSchema& schema, std::span<const std::byte> payload,
                     std::vector<Value>& values);

}  // namespace probed::lang
