// Any bytes as an instruction: decode, and place the copy if it may be copied.

#include <cstdlib>

#include "engine/arch/x86_64/instruction.h"
#include "engine/arch/x86_64/relocate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kOriginal = 0x555555555000, kCopy = 0x555565555000;
  auto decoded = probed::arch::Decode({data, size}, kOriginal);
  if (!decoded.ok()) return 0;
  if (decoded.value().length == 0 || decoded.value().length > size) std::abort();
  auto copy = probed::arch::BuildCopy(decoded.value(), kOriginal, kCopy);
  if (copy.ok() && copy.value().code.size() > probed::arch::kMaxCopySize) std::abort();
  return 0;
}
