#pragma once
// Taking demangled C++ names apart, by text alone.

#include <string>
#include <string_view>

namespace probed::elf {

// "int ns::Class<A>::f(B) const" without return type, parameters and qualifiers: "ns::Class<A>::f".
std::string_view WithoutSignature(std::string_view demangled);

// Without the template arguments of the last component: "ns::f<int>" -> "ns::f".
std::string_view WithoutTemplateArguments(std::string_view name);

// The identifier that the mangled form must contain: "ns::Class::f(int)" -> "f"; empty when there
// is none that is spelled out (operators).
std::string_view LastIdentifier(std::string_view name);

}  // namespace probed::elf
