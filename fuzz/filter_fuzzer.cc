// Filters in both dialects, run over a payload made of the same bytes: no crash, jumps that end,
// and what is accepted is accepted again as it reads back.

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "engine/lang/filter.h"

namespace {

using probed::lang::BaseType;
using probed::lang::Dialect;
using probed::lang::EventSchema;

// One field of every type, and arrays.
EventSchema AllTypes() {
  EventSchema schema;
  for (int base = 0; base <= static_cast<int>(BaseType::kBytes); ++base) {
    for (const uint16_t count : {1, 3}) {
      probed::lang::FieldSchema field;
      field.name = std::string(1, static_cast<char>('a' + base)) + (count > 1 ? "s" : "");
      field.type.base = static_cast<BaseType>(base);
      field.type.count = count;
      field.offset = schema.fixed_size;
      field.size = probed::lang::ElementSize(field.type.base) * count;
      schema.fixed_size += field.size;
      schema.fields.push_back(field);
    }
  }
  return schema;
}

void Judge(Dialect dialect, const EventSchema& schema, std::string_view text,
           std::span<const std::byte> payload) {
  const auto filter = probed::lang::CompileFilter(text, schema, {dialect, 70});
  if (!filter) {
    probed::lang::FilterFile(filter.error());
    return;
  }
  probed::lang::Passes(filter->code, {payload, "comm", 1, 2, 3, 4, 5});
  const auto& ops = filter->code.ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].if_true <= i || ops[i].if_false <= i) std::abort();
  }
  const auto again = probed::lang::CompileFilter(filter->text, schema, {dialect, 70});
  if (!filter->text.empty() && (!again || again->text != filter->text)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const EventSchema schema = AllTypes();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Judge(Dialect::kKernel, schema, bytes, std::as_bytes(std::span(data, size)));
  Judge(Dialect::kExtended, schema, bytes, std::as_bytes(std::span(data, size)));
  return 0;
}
