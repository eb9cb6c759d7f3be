// --format json: one object a line, numbers as numbers, bytes as strings (json_writer.h). A string
// whose bytes are not UTF-8 is told exactly by a second object, "hex".

#include <algorithm>
#include <cstring>
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
    case v1::TargetChange::CHANGE_SITE_GONE:
      return "site_gone";
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

void AppendScalar(const lang::Scalar& scalar, bool is_char, JsonWriter& json) {
  if (const auto* text = std::get_if<lang::StringValue>(&scalar)) {
    if (text->fault)
      json.Null();
    else
      json.String(text->bytes);
  } else if (const auto* number = std::get_if<uint64_t>(&scalar)) {
    const char byte = static_cast<char>(*number);
    if (is_char)
      json.String({&byte, 1});
    else
      json.Unsigned(*number);
  } else if (const auto* signed_number = std::get_if<int64_t>(&scalar)) {
    json.Signed(*signed_number);
  } else {
    json.Double(std::get<double>(scalar));
  }
}

void AppendValue(const lang::Value& value, bool is_char, JsonWriter& json) {
  if (value.is_array) json.BeginArray();
  for (const lang::Scalar& element : value.elements)
    AppendScalar(element, is_char, json);
  if (value.is_array) json.EndArray();
}

bool IsCut(const lang::StringValue& text) {
  return text.truncated;
}
bool IsRaw(const lang::StringValue& text) {
  return !IsUtf8(text.bytes);
}

bool AnyText(const lang::Value& value, bool (*test)(const lang::StringValue&)) {
  return std::any_of(value.elements.begin(), value.elements.end(), [&](const auto& element) {
    const auto* text = std::get_if<lang::StringValue>(&element);
    return text != nullptr && test(*text);
  });
}

std::string_view BytesOf(const lang::Scalar& scalar) {
  const auto* text = std::get_if<lang::StringValue>(&scalar);
  return text != nullptr ? std::string_view(text->bytes) : std::string_view();
}

class NdjsonWriter : public EventWriter {
 public:
  void AppendHit(const Hit& hit, const KnownSchema& known, std::string& out) override {
    const lang::PackedHit& head = hit.head;
    JsonWriter json(out);
    Begin("hit", head.sequence, head.monotonic_ns, head.wall_ns, json);
    json.Raw(known.json_head);
    json.Key("pid").Signed(head.pid);
    json.Key("tid").Signed(head.tid);
    json.Key("cpu").Unsigned(head.cpu);
    json.Key("comm").String({head.comm, strnlen(head.comm, sizeof(head.comm))});
    if (known.schema.kind != lang::ProbeKind::kTracepoint) json.Key("ip").Unsigned(head.ip);
    if (known.schema.kind == lang::ProbeKind::kReturn) json.Key("function").Unsigned(head.function);
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
    if (loss.target_changes() != 0) json.Key("target_changes").Unsigned(loss.target_changes());
    json.EndObject();
    out += '\n';
  }

  void AppendUnwound(const v1::Event& event, const KnownSchema& known, std::string& out) override {
    const v1::Unwound& unwound = event.unwound();
    JsonWriter json(out);
    Begin("unwound", event, json);
    json.Raw(known.json_head);
    json.Key("calls").Unsigned(unwound.calls());
    json.Key("pid").Signed(unwound.pid());
    if (unwound.tid() != 0) json.Key("tid").Signed(unwound.tid());
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
  static void Begin(std::string_view type, uint64_t sequence, uint64_t monotonic_ns,
                    int64_t wall_ns, JsonWriter& json) {
    json.BeginObject().Key("type").String(type);
    json.Key("sequence").Unsigned(sequence);
    json.Key("monotonic_ns").Unsigned(monotonic_ns);
    json.Key("wall_ns").Signed(wall_ns);
  }
  static void Begin(std::string_view type, const v1::Event& event, JsonWriter& json) {
    Begin(type, event.sequence(), event.monotonic_ns(), event.wall_ns(), json);
  }

  static void AppendArguments(const Hit& hit, const KnownSchema& known, JsonWriter& json) {
    json.Key("args").BeginObject();
    const size_t arguments = hit.values.size() - (known.schema.has_text ? 1 : 0);
    for (size_t i = 0; i < arguments; ++i) {
      json.RawKey(known.json_keys[i]);
      AppendValue(hit.values[i], IsChar(known.schema.fields[i]), json);
    }
    json.EndObject();
    if (known.schema.has_text) {
      json.Key("text");
      AppendValue(hit.values.back(), false, json);
    }
  }

  // Names of the fields that were cut at the limit; no key when there are none.
  static void AppendTruncated(const Hit& hit, const KnownSchema& known, JsonWriter& json) {
    bool begun = false;
    for (size_t i = 0; i < hit.values.size(); ++i) {
      if (!AnyText(hit.values[i], IsCut)) continue;
      if (!begun) json.Key("truncated").BeginArray();
      begun = true;
      json.String(known.schema.fields[i].name);
    }
    if (begun) json.EndArray();
  }

  // The exact bytes of fields that a JSON string cannot tell apart; no key when there are none.
  static void AppendRaw(const Hit& hit, const KnownSchema& known, JsonWriter& json,
                        std::string& out) {
    bool begun = false;
    for (size_t i = 0; i < hit.values.size(); ++i) {
      if (!AnyText(hit.values[i], IsRaw)) continue;
      if (!begun) json.Key("hex").BeginObject();
      begun = true;
      json.RawKey(known.json_keys[i]);
      AppendRawValue(hit.values[i], json, out);
    }
    if (begun) json.EndObject();
  }

  static void AppendRawValue(const lang::Value& value, JsonWriter& json, std::string& out) {
    if (value.is_array) json.BeginArray();
    for (const lang::Scalar& element : value.elements) {
      json.Raw("");
      AppendHex(BytesOf(element), out);
    }
    if (value.is_array) json.EndArray();
  }
};

}  // namespace

std::unique_ptr<EventWriter> MakeJsonWriter() {
  return std::make_unique<NdjsonWriter>();
}

}  // namespace probed::client
