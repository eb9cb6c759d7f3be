#pragma once
// A `format` file of tracefs (events/GROUP/EVENT/format), parsed. Pure; trusts nothing of the text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace probed::kernel {

struct FormatField {
  // Where the data is: in the field, or elsewhere in the record, at an offset from the record's
  // begin or from the field's end (include/trace/stages/stage1_struct_define.h).
  enum class Place : uint8_t { kHere, kDataLoc, kRelLoc };

  std::string name;
  std::string type;       // of an element: "unsigned long", "const char *", "char"
  std::string dimension;  // what stands between the brackets; of `char[][2]` the last
  bool is_array = false;  // has brackets, but for those of a __data_loc's element type
  bool is_signed = false;
  Place place = Place::kHere;
  uint32_t offset = 0;
  uint32_t size = 0;  // 0: up to the record's end

  bool is_pointer() const { return type.ends_with('*'); }
};

struct EventFormat {
  std::string name;
  uint16_t id = 0;
  std::vector<FormatField> fields;  // without the common ones
  std::string print_format;         // behind "print fmt: "

  const FormatField* Find(std::string_view field) const;
};

// The common fields of every record, which have stood there since 2.6.31.
inline constexpr uint32_t kCommonFlagsOffset = 2;
inline constexpr uint32_t kCommonPreemptCountOffset = 3;
inline constexpr uint32_t kCommonPidOffset = 4;
inline constexpr uint32_t kCommonBytes = 8;

// Of a format file, whose first line is "name: EVENT".
std::string NameIn(const std::string& format);
std::string WithName(const std::string& format, const std::string& event);

// BAD_EVENT_FORMAT.
Result<EventFormat> ParseEventFormat(std::string_view text);

}  // namespace probed::kernel
