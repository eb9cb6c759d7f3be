#pragma once
// JSON text appended to a string that the caller reuses. No allocation of its own.
//
// Strings may hold any bytes. Well-formed UTF-8 is passed on as it is; any other byte XX becomes
// the escape \u00XX, so that the output is always valid JSON and valid UTF-8 (RFC 8259
// section 8.1).

#include <cstdint>
#include <string>
#include <string_view>

namespace probed::client {

// Bytes of the well-formed UTF-8 sequence that `bytes` starts with; 0 when there is none.
size_t Utf8SequenceLength(std::string_view bytes);
bool IsUtf8(std::string_view bytes);

void AppendJsonString(std::string_view bytes, std::string& out);
// JSON has no infinities and no NaN: they become the strings "Infinity", "-Infinity" and "NaN".
void AppendJsonNumber(double number, std::string& out);

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view bytes);
  JsonWriter& Unsigned(uint64_t number);
  JsonWriter& Signed(int64_t number);
  JsonWriter& Double(double number);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  // Text that is JSON already: a value, or whole members.
  JsonWriter& Raw(std::string_view json);
  // A key that is JSON already, colon included.
  JsonWriter& RawKey(std::string_view json);

 private:
  void Separate();

  std::string& out_;
  bool first_ = true;  // nothing written yet in the innermost object or array, or after a key
};

}  // namespace probed::client
