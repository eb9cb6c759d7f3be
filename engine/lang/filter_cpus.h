#pragma once
// Lists of CPUs, "0,2-5,8-15:1/4", as lib/bitmap.c reads them. Pure.

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/lang/filter_code.h"

namespace probed::lang {

// Nothing for a list that is malformed or names a CPU that is not below `cpus`.
std::optional<FilterSet> ParseCpuList(std::string_view text, uint32_t cpus);

}  // namespace probed::lang
