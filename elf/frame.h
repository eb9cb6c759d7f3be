#pragma once
// One function as the unwind tables describe it.

#include <cstdint>

#include "base/address.h"

namespace probed::elf {

struct Frame {
  LinkAddr start;
  uint64_t size = 0;
  LinkAddr exception_table;  // language-specific data; zero: none
  LinkAddr entry;            // its FDE, behind the length
};

}  // namespace probed::elf
