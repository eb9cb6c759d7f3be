#include "engine/probe/returns_twice.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace probed::probe {
namespace {

// glibc and musl; the list of GCC (special_function_p) with their internal aliases. Then what the
// two libunwinds call getcontext.
constexpr std::array<std::string_view, 16> kNames = {
    "setjmp",
    "_setjmp",
    "__setjmp",
    "sigsetjmp",
    "__sigsetjmp",
    "__libc_sigsetjmp",
    "savectx",
    "getcontext",
    "__getcontext",
    "vfork",
    "__vfork",
    "__libc_vfork",
    "unw_getcontext",
    "__unw_getcontext",
    "_Ux86_64_getcontext",
    "_ULx86_64_getcontext",
};

bool IsOne(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name.substr(0, name.find('@'))) != kNames.end();
}

}  // namespace

std::optional<std::string> ReturnsTwice(const elf::File& file, LinkAddr address) {
  auto function = file.FunctionAt(address);
  if (function && IsOne(function->symbol)) return function->symbol;
  // An FDE without a symbol, or the one of several names that is not told.
  for (LinkAddr start : {address, function ? function->start : address}) {
    for (const auto& alias : file.AliasesAt(start)) {
      if (IsOne(alias.name)) return alias.name;
    }
  }
  return std::nullopt;
}

}  // namespace probed::probe
