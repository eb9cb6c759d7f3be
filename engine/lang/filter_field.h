#pragma once
// What a name in a filter means. Pure.

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/lang/filter_code.h"
#include "engine/lang/schema.h"

namespace probed::lang {

struct FilterField {
  enum class Kind : uint8_t { kNumber, kString, kCpu, kComm, kStackTrace };

  Kind kind = Kind::kNumber;
  FilterOperand operand = FilterOperand::kField;
  FilterNumber number = FilterNumber::kUnsigned;
  uint32_t size = 0;         // of a number, in bytes: an array counts as one number
  uint32_t kernel_size = 0;  // what the kernel's field takes
  uint16_t index = 0;        // kField
  uint32_t offset = 0;       // kField

  bool is_text() const { return kind == Kind::kString || kind == Kind::kComm; }
  bool comparable() const { return size == 1 || size == 2 || size == 4 || size == 8; }
};

// The event's own fields come first, then the generic ones, then the common ones.
std::optional<FilterField> FindFilterField(const EventSchema& schema, std::string_view name);

}  // namespace probed::lang
