// Any bytes as an ELF file: errors, never crashes, hangs or huge allocations.

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "elf/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0) return 0;
  if (::write(fd, data, size) == static_cast<ssize_t>(size)) {
    auto file = probed::elf::File::Open("/proc/self/fd/" + std::to_string(fd));
    if (file.ok()) {
      const auto& elf = *file.value();
      (void)elf.functions().size();
      (void)elf.FunctionAt(elf.entry());
      (void)elf.FindFunction("main");
      (void)elf.is_go();
    }
  }
  ::close(fd);
  return 0;
}
