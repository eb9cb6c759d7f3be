#pragma once
// A decoded argument value: what goes over the wire and what the printers take.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace probed::lang {

struct StringValue {
  std::string bytes;       // raw, without the terminating NUL; need not be UTF-8
  bool fault = false;      // nothing could be read: prints (fault)
  bool truncated = false;  // cut at the limit
  bool operator==(const StringValue&) const = default;
};

// uint64_t: u*, x*, char, bitfields. int64_t: s*. double: f32, f64.
using Scalar = std::variant<uint64_t, int64_t, double, StringValue>;

struct Value {
  bool is_array = false;
  std::vector<Scalar> elements;  // exactly one when not an array
  bool operator==(const Value&) const = default;
};

}  // namespace probed::lang
