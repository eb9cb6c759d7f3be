#pragma once
// Functions that no return probe can survive. Any thread.

#include <optional>
#include <string>

#include "base/address.h"
#include "elf/file.h"

namespace probed::probe {

// The name of the function that holds `address`, if it is one of the C library's that return more
// than once from one call: they keep their return address to come back to it later (setjmp,
// getcontext), or share their stack with a child that returns first (vfork). The trampoline would
// be come back to when nobody waits there any more.
std::optional<std::string> ReturnsTwice(const elf::File& file, LinkAddr address);

}  // namespace probed::probe
