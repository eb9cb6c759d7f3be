#include "client/hit.h"

#include <algorithm>
#include <cstring>

#include "engine/lang/payload.h"

namespace probed::client {
namespace {

lang::StringValue Fault() {
  return {.bytes = {}, .fault = true, .truncated = false};
}

lang::Scalar ScalarOf(const v1::Value& value) {
  switch (value.kind_case()) {
    case v1::Value::kUnsignedValue:
      return value.unsigned_value();
    case v1::Value::kSignedValue:
      return static_cast<int64_t>(value.signed_value());
    case v1::Value::kDoubleValue:
      return value.double_value();
    case v1::Value::kBytesValue:
      return lang::StringValue{
          .bytes = value.bytes_value(), .fault = false, .truncated = value.truncated()};
    default:
      return Fault();
  }
}

void ConvertValue(const v1::Value& value, lang::Value& out) {
  out.is_array = value.kind_case() == v1::Value::kArray;
  out.elements.clear();
  if (!out.is_array) {
    out.elements.push_back(ScalarOf(value));
    return;
  }
  for (const auto& element : value.array().elements())
    out.elements.push_back(ScalarOf(element));
}

}  // namespace

void FromMessage(const v1::Event& event, const lang::EventSchema& schema, Hit& out) {
  const v1::Hit& hit = event.hit();
  out.head = {.sequence = event.sequence(),
              .probe = hit.schema_id(),
              .monotonic_ns = event.monotonic_ns(),
              .wall_ns = event.wall_ns(),
              .ip = hit.ip(),
              .function = hit.function(),
              .pid = hit.pid(),
              .tid = hit.tid(),
              .cpu = static_cast<uint16_t>(hit.cpu()),
              .flags = static_cast<uint8_t>(hit.common_flags()),
              .preempt_count = static_cast<uint8_t>(hit.common_preempt_count())};
  std::memcpy(out.head.comm, hit.comm().data(), std::min(hit.comm().size(), sizeof(out.head.comm)));
  out.values.resize(schema.fields.size());
  static const v1::Value kMissing;
  for (size_t i = 0; i < out.values.size(); ++i) {
    const int index = static_cast<int>(i);
    ConvertValue(index < hit.values_size() ? hit.values(index) : kMissing, out.values[i]);
  }
}

void FromPacked(const lang::PackedHitReader::Hit& packed, const lang::EventSchema& schema,
                Hit& out) {
  out.head = packed.header;
  if (lang::DecodePayload(schema, packed.payload, out.values).ok()) return;
  out.values.assign(schema.fields.size(), lang::Value{.is_array = false, .elements = {Fault()}});
}

}  // namespace probed::client
