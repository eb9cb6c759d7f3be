#include "elf/demangle.h"

#include <libiberty/demangle.h>

namespace probed::elf {
namespace {

constexpr size_t kMaxMangled = 16 << 10;
constexpr size_t kMaxDemangled = 64 << 10;
constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;

struct TooLong {};

// Throwing is the only way to stop the demangler. It keeps all its state on the stack, and C code
// has unwind tables on every architecture we build for.
void Append(const char* text, size_t length, void* opaque) {
  auto& output = *static_cast<std::string*>(opaque);
  if (output.size() + length > kMaxDemangled) throw TooLong();
  output.append(text, length);
}

bool DemangleInto(const std::string& name, std::string* output) {
  // Old Rust names look like C++ ones that end in a hash, so Rust is asked first.
  if (rust_demangle_callback(name.c_str(), kOptions, Append, output) != 0) return true;
  output->clear();
  return cplus_demangle_v3_callback(name.c_str(), kOptions, Append, output) != 0;
}

}  // namespace

bool LooksMangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R");
}

std::string Demangle(const std::string& name) {
  if (!LooksMangled(name) || name.size() > kMaxMangled) return name;
  std::string output;
  try {
    return DemangleInto(name, &output) ? output : name;
  } catch (const TooLong&) {
    return name;
  }
}

}  // namespace probed::elf
