// The text of an event's format file.

#include <cstdint>
#include <string>

#include "engine/kernel/event_format.h"
#include "engine/kernel/event_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto format = probed::kernel::ParseEventFormat(text);
  if (format.ok()) (void)probed::kernel::PlanEvent("g", *format);
  return 0;
}
