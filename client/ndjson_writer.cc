// --format json: one object a line, numbers as numbers, bytes as strings (json_writer.h). A string
// whose bytes are not UTF-8 is told exactly by a second object, "hex".

#include <string_view>

#include "client/event_writer.h"
#include "client/json_writer.h"

namespace probed::client {
namespace {

std::string_view ChangeName(v1::TargetChange::Change change) {
  switch (change) {
    case v1::TargetChange::CHANGE_ATTACHED:
      return "attached";
    case v1::TargetChange::CHANGE_FORKED:
      return "forked";
    case v1::TargetChange::CHANGE_EXECUTED:
      return "executed";
    case v1::TargetChange::CHANGE_EXITED:
      return "exited";
    case v1::TargetChange::CHANGE_DETACHED:
      return "detached";
    default:
      return "unknown";
  }
}

void AppendHex(std::string_view bytes, std::string& out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += '"';
  for (char byte : bytes) {
    out += kDigits[static_cast<uint8_t>(byte) >> 4];
    out += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  out += '"';
}

bool IsChar(const lang::FieldSchema& field) {
  return field.type.base == lang::BaseType::kChar;
}

void AppendScalar(const v1::Value& value, bool is_char, JsonWriter& json) {
  switch (value.kind_case()) {
    case v1::Value::kUnsignedValue:
      if (is_char) {
        char byte = static_cast<char>(value.unsigned_value());
        json.String({&byte, 1});
      } else {
        json.Unsigned(value.unsigned_value());
      }
      break;
    case v1::Value::kSignedValue:
      json.Signed(value.signed_value());
      break;
    case v1::Value::kDoubleValue:
      json.Double(value.double_value());
      break;
    case v1::Value::kBytesValue:
      json.String(value.bytes_value());
      break;
    default:
      json.Null();
  }
}

void AppendValue(const v1::Value& value, bool is_char, JsonWriter& json) {
  if (value.kind_case() != v1::Value::kArray) return AppendScalar(value, is_char, json);
  json.BeginArray();
  for (const auto& element : value.array().elements())
    AppendScalar(element, is_char, json);
  json.EndArray();
}

template <class Test>
bool AnyScalar(const v1::Value& value, Test test) {
  if (test(value)) return true;
  for (const auto& element : value.array().elements()) {
    if (test(element)) return true;
  }
  return false;
}

bool IsCut(const v1::Value& value) {
  return value.truncated();
}
bool IsRaw(const v1::Value& value) {
  return value.kind_case() == v1::Value::kBytesValue && !IsUtf8(value.bytes_value());
}

class NdjsonWriter : public EventWriter {
 public:
  void AppendHit(const v1::Event& event, const KnownSchema& known, std::string& out) override {
    const v1::Hit& hit = event.hit();
    JsonWriter json(out);
    Begin("hit", event, json);
    json.Raw(known.json_head);
    json.Key("pid").Signed(hit.pid());
    json.Key("tid").Signed(hit.tid());
    json.Key("cpu").Unsigned(hit.cpu());
    json.Key("comm").String(hit.comm());
    json.Key("ip").Unsigned(hit.ip());
    if (known.schema.kind == lang::ProbeKind::kReturn)
      json.Key("function").Unsigned(hit.function());
    AppendArguments(hit, known, json);
    AppendTruncated(hit, known, json);
    AppendRaw(hit, known, json, out);
    json.EndObject();
    out += '\n';
  }

  void AppendLoss(const v1::Event& event, std::string& out) override {
    const v1::Loss& loss = event.loss();
    JsonWriter json(out);
    Begin("loss", event, json);
    json.Key("lost").Unsigned(loss.lost());
    json.Key("first_sequence").Unsigned(loss.first_sequence());
    json.Key("last_sequence").Unsigned(loss.last_sequence());
    json.Key("first_monotonic_ns").Unsigned(loss.first_monotonic_ns());
    json.Key("last_monotonic_ns").Unsigned(loss.last_monotonic_ns());
    json.EndObject();
    out += '\n';
  }

  void AppendTargetChange(const v1::Event& event, std::string& out) override {
    const v1::TargetChange& change = event.target_change();
    JsonWriter json(out);
    Begin("target", event, json);
    json.Key("change").String(ChangeName(change.change()));
    json.Key("target").String(change.target());
    json.Key("root").String(change.root());
    if (change.change() == v1::TargetChange::CHANGE_EXITED) {
      json.Key("wait_status").Signed(change.wait_status());
    }
    if (!change.detail().empty()) json.Key("detail").String(change.detail());
    json.EndObject();
    out += '\n';
  }

 private:
  static void Begin(std::string_view type, const v1::Event& event, JsonWriter& json) {
    json.BeginObject().Key("type").String(type);
    json.Key("sequence").Unsigned(event.sequence());
    json.Key("monotonic_ns").Unsigned(event.monotonic_ns());
    json.Key("wall_ns").Signed(event.wall_ns());
  }

  static size_t FieldCount(const v1::Hit& hit, const KnownSchema& known) {
    return std::min(known.json_keys.size(), static_cast<size_t>(hit.values_size()));
  }

  static void AppendArguments(const v1::Hit& hit, const KnownSchema& known, JsonWriter& json) {
    json.Key("args").BeginObject();
    for (size_t i = 0; i < FieldCount(hit, known); ++i) {
      json.RawKey(known.json_keys[i]);
      AppendValue(hit.values(static_cast<int>(i)), IsChar(known.schema.fields[i]), json);
    }
    json.EndObject();
  }

  // Names of the fields that were cut at the limit; no key when there are none.
  static void AppendTruncated(const v1::Hit& hit, const KnownSchema& known, JsonWriter& json) {
    bool begun = false;
    for (size_t i = 0; i < FieldCount(hit, known); ++i) {
      if (!AnyScalar(hit.values(static_cast<int>(i)), IsCut)) continue;
      if (!begun) json.Key("truncated").BeginArray();
      begun = true;
      json.String(known.schema.fields[i].name);
    }
    if (begun) json.EndArray();
  }

  // The exact bytes of fields that a JSON string cannot tell apart; no key when there are none.
  static void AppendRaw(const v1::Hit& hit, const KnownSchema& known, JsonWriter& json,
                        std::string& out) {
    bool begun = false;
    for (size_t i = 0; i < FieldCount(hit, known); ++i) {
      const v1::Value& value = hit.values(static_cast<int>(i));
      if (!AnyScalar(value, IsRaw)) continue;
      if (!begun) json.Key("hex").BeginObject();
      begun = true;
      json.RawKey(known.json_keys[i]);
      AppendRawValue(value, json, out);
    }
    if (begun) json.EndObject();
  }

  static void AppendRawValue(const v1::Value& value, JsonWriter& json, std::string& out) {
    if (value.kind_case() != v1::Value::kArray) {
      json.Raw("");
      return AppendHex(value.bytes_value(), out);
    }
    json.BeginArray();
    for (const auto& element : value.array().elements()) {
      json.Raw("");
      AppendHex(element.bytes_value(), out);
    }
    json.EndArray();
  }
};

}  // namespace

std::unique_ptr<EventWriter> MakeJsonWriter() {
  return std::make_unique<NdjsonWriter>();
}

}  // namespace probed::client
