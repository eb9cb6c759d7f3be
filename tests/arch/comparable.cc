#include "tests/arch/comparable.h"

#include <cstdlib>

namespace probed::arch {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 0);
}

const char* WhyNotComparable(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPMC:
    case ZYDIS_MNEMONIC_RDPRU:
      return "reads a counter";
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
      return "random";
    case ZYDIS_MNEMONIC_CPUID:
      return "reads the hypervisor's clock and this processor's number";
    case ZYDIS_MNEMONIC_UMWAIT:
    case ZYDIS_MNEMONIC_TPAUSE:
      return "reports whether time ran out";
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XTEST:
      return "a transaction aborts when it likes";
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMMCALL:
      return "belongs to the hypervisor";
    default:
      return nullptr;
  }
}

bool NeedsLowAddresses(const ZydisDecodedInstruction& instruction) {
  return instruction.address_width == 32 && !instruction.raw.imm[0].is_relative;
}

}  // namespace probed::arch
