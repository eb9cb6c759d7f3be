#include "elf/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace probed::elf {

std::string Demangle(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return text == nullptr ? name : text.get();
}

}  // namespace probed::elf
