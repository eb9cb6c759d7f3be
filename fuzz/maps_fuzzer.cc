// The text of /proc/PID/maps holds paths that a target chooses.

#include <string_view>

#include "elf/module_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto mappings = probed::elf::ParseMaps({reinterpret_cast<const char*>(data), size});
  if (mappings.ok()) probed::elf::ModuleMap map(std::move(mappings).value());
  return 0;
}
