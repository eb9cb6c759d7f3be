#include "elf/demangle.h"

#define HAVE_DECL_BASENAME 1  // libiberty.h declares it otherwise than string.h
#include <libiberty/demangle.h>

#include <csetjmp>

namespace probed::elf {
namespace {

constexpr size_t kMaxMangled = 16 << 10;
constexpr size_t kMaxDemangled = 64 << 10;
constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI;

struct Output {
  std::string text;
  std::jmp_buf too_long;
};

// A jump is the only way to stop the demangler, and safe: it is C and keeps its state on the stack.
void Append(const char* text, size_t length, void* opaque) {
  auto* output = static_cast<Output*>(opaque);
  if (output->text.size() + length > kMaxDemangled) std::longjmp(output->too_long, 1);
  output->text.append(text, length);
}

bool DemangleInto(const std::string& name, Output* output) {
  if (setjmp(output->too_long) != 0) return false;
  // Old Rust names look like C++ ones that end in a hash, so Rust is asked first.
  if (rust_demangle_callback(name.c_str(), kOptions, Append, output) != 0) return true;
  output->text.clear();
  return cplus_demangle_v3_callback(name.c_str(), kOptions, Append, output) != 0;
}

}  // namespace

bool LooksMangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R");
}

std::string Demangle(const std::string& name) {
  if (!LooksMangled(name) || name.size() > kMaxMangled) return name;
  Output output;
  return DemangleInto(name, &output) ? output.text : name;
}

}  // namespace probed::elf
