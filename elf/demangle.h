#pragma once
// C++ names as people write them. Itanium C++ ABI, section 5.1.

#include <string>

namespace probed::elf {

// The name itself when it is not mangled, or its demangled form would be absurdly long.
std::string Demangle(const std::string& name);

}  // namespace probed::elf
