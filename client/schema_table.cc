#include "client/schema_table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "client/json_writer.h"

namespace probed::client {
namespace {

lang::BaseType BaseOf(v1::FieldType::Base base) {
  // The two enumerations list the same types in the same order.
  static_assert(v1::FieldType::BASE_BYTES - 1 == static_cast<int>(lang::BaseType::kBytes));
  static_assert(v1::FieldType::BASE_CHAR - 1 == static_cast<int>(lang::BaseType::kChar));
  if (base < v1::FieldType::BASE_U8 || base > v1::FieldType::BASE_BYTES) {
    return lang::BaseType::kX64;
  }
  return static_cast<lang::BaseType>(base - 1);
}

lang::ProbeKind KindOf(v1::ProbeKind kind) {
  switch (kind) {
    case v1::PROBE_KIND_RETURN:
      return lang::ProbeKind::kReturn;
    case v1::PROBE_KIND_TRACEPOINT:
      return lang::ProbeKind::kTracepoint;
    default:
      return lang::ProbeKind::kEntry;
  }
}

std::string_view KindName(lang::ProbeKind kind) {
  static constexpr std::string_view kNames[] = {"entry", "return", "tracepoint"};
  return kNames[static_cast<size_t>(kind)];
}

std::string JsonHead(const KnownSchema& known) {
  std::string head;
  JsonWriter json(head);
  json.Key("group").String(known.schema.group);
  json.Key("event").String(known.schema.event);
  json.Key("kind").String(KindName(known.schema.kind));
  json.Key("probe").String(known.probe);
  return head;
}

std::string JsonKey(const std::string& name) {
  std::string key;
  AppendJsonString(name, key);
  return key + ':';
}

}  // namespace

lang::ArgType TypeOf(const v1::FieldType& type) {
  return {.base = BaseOf(type.base()),
          .is_array = type.is_array(),
          .count = static_cast<uint16_t>(std::max(1u, type.count())),
          .bit_width = static_cast<uint8_t>(type.bit_width()),
          .bit_offset = static_cast<uint8_t>(type.bit_offset())};
}

void SchemaTable::Add(const v1::EventSchema& schema) {
  KnownSchema known;
  known.probe = schema.probe();
  known.schema.kind = KindOf(schema.kind());
  known.schema.group = schema.group();
  known.schema.event = schema.event();
  for (const auto& field : schema.fields()) {
    lang::FieldSchema converted;
    converted.name = field.name();
    converted.type = TypeOf(field.type());
    converted.offset = known.schema.fixed_size;
    converted.size = lang::ElementSize(converted.type.base) * converted.type.count;
    known.schema.fixed_size += converted.size;
    known.schema.fields.push_back(std::move(converted));
    known.json_keys.push_back(JsonKey(field.name()));
  }
  known.schema.has_text = schema.has_text() && !known.schema.fields.empty();
  known.json_head = JsonHead(known);
  schemas_.insert_or_assign(schema.id(), std::move(known));
}

const KnownSchema* SchemaTable::Find(uint64_t id) const {
  auto found = schemas_.find(id);
  return found == schemas_.end() ? nullptr : &found->second;
}

}  // namespace probed::client
