#pragma once
// C++ and Rust names as people write them. Itanium C++ ABI, section 5.1; Rust RFC 2603.

#include <string>
#include <string_view>

namespace probed::elf {

// Whether it is worth trying: most names of C are not.
bool LooksMangled(std::string_view name);

// The name itself when it is not mangled, or its demangled form would be absurdly long: a short
// hostile name can stand for gigabytes.
std::string Demangle(const std::string& name);

}  // namespace probed::elf
