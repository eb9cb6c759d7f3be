#include "engine/lang/payload.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace probed::lang {
namespace {

Error BadPayload(std::string_view what, const FieldSchema& field) {
  Error error;
  error.code = ErrorCode::kInternal;
  error.reason = "BAD_PAYLOAD";
  error.message = fmt::format("{} in field {}", what, field.name);
  return error;
}

template <class T>
T LoadAs(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

int64_t SignExtend(uint64_t value, uint32_t size) {
  const uint32_t unused = 64 - 8 * size;
  return static_cast<int64_t>(value << unused) >> unused;
}

Scalar DecodeNumber(BaseType base, const std::byte* bytes) {
  if (base == BaseType::kF32) return static_cast<double>(LoadAs<float>(bytes));
  if (base == BaseType::kF64) return LoadAs<double>(bytes);
  const uint32_t size = ElementSize(base);
  uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  if (IsSigned(base)) return SignExtend(value, size);
  return value;
}

class Decoder {
 public:
  Decoder(const EventSchema& schema, std::span<const std::byte> payload)
      : schema_(schema), payload_(payload), budget_(payload.size()) {}

  Status DecodeField(const FieldSchema& field, Value& value);

 private:
  Status DecodeString(const FieldSchema& field, const std::byte* slot, StringValue& value);

  const EventSchema& schema_;
  std::span<const std::byte> payload_;
  // Honest slots never overlap, so all strings together fit in the payload; slots that do could
  // otherwise make a small record fill the memory.
  size_t budget_;
};

// The element as a string, with the memory that it had as one.
StringValue& AsString(Scalar& scalar) {
  auto* text = std::get_if<StringValue>(&scalar);
  return text != nullptr ? *text : scalar.emplace<StringValue>();
}

Status Decoder::DecodeString(const FieldSchema& field, const std::byte* slot, StringValue& value) {
  const auto offset = LoadAs<uint32_t>(slot);
  const auto word = LoadAs<uint32_t>(slot + sizeof(uint32_t));
  value.fault = word == kFaultSlot;
  value.truncated = false;
  value.bytes.clear();
  if (value.fault) return {};
  const size_t length = word & ~kTruncatedBit;
  value.truncated = (word & kTruncatedBit) != 0;
  if (offset < schema_.fixed_size || offset > payload_.size() ||
      length > payload_.size() - offset) {
    return BadPayload("string outside the record", field);
  }
  if (length > budget_) return BadPayload("overlapping string", field);
  budget_ -= length;
  value.bytes.assign(reinterpret_cast<const char*>(payload_.data() + offset), length);
  return {};
}

Status Decoder::DecodeField(const FieldSchema& field, Value& value) {
  const uint32_t size = ElementSize(field.type.base);
  const uint64_t end = uint64_t{field.offset} + uint64_t{size} * field.type.count;
  if (end > schema_.fixed_size) return BadPayload("slot outside the fixed part", field);
  value.is_array = field.type.is_array;
  value.elements.resize(field.type.count);
  for (uint32_t i = 0; i < field.type.count; ++i) {
    const std::byte* slot = payload_.data() + field.offset + size_t{size} * i;
    if (IsStringLike(field.type.base)) {
      PROBED_RETURN_IF_ERROR(DecodeString(field, slot, AsString(value.elements[i])));
    } else {
      value.elements[i] = DecodeNumber(field.type.base, slot);
    }
  }
  return {};
}

}  // namespace

Status DecodePayload(const EventSchema& schema, std::span<const std::byte> payload,
                     std::vector<Value>& values) {
  if (payload.size() < schema.fixed_size) {
    Error error;
    error.reason = "BAD_PAYLOAD";
    error.message =
        fmt::format("record of {} bytes, {} expected at least", payload.size(), schema.fixed_size);
    return error;
  }
  Decoder decoder(schema, payload);
  values.resize(schema.fields.size());
  for (size_t i = 0; i < values.size(); ++i)
    PROBED_RETURN_IF_ERROR(decoder.DecodeField(schema.fields[i], values[i]));
  return {};
}

Result<std::vector<Value>> DecodePayload(const EventSchema& schema,
                                         std::span<const std::byte> payload) {
  std::vector<Value> values;
  PROBED_RETURN_IF_ERROR(DecodePayload(schema, payload, values));
  return values;
}

}  // namespace probed::lang
