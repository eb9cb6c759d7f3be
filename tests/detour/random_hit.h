#pragma once
// A test whose hits have random registers over a HoledMemory, and what the trap path would see.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "tests/detour/holed_memory.h"
#include "tests/detour/installed_detour.h"
#include "tests/detour/program_generator.h"
#include "tests/lang/self_context.h"

namespace probed::detour::testing {

// push %rbp; mov %rsp,%rbp; pop %rbp; mov %esi,%eax; ret
inline constexpr uint8_t kFunction[] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0x89, 0xf0, 0xc3};

class RandomHit : public ::testing::Test {
 protected:
  static constexpr uint64_t kStackTop = 64 << 10;  // behind it nothing is readable

  explicit RandomHit(uint64_t seed) : memory_(seed * 7919 + 1) {
    ::mprotect(stack_.data() + kStackTop, stack_.size() - kStackTop, PROT_NONE);
  }

  lang::FetchLimits SomeLimits() {
    constexpr uint32_t kMax[] = {0, 1, 7, 8, 9, 100, 4095, 4096, 5000};
    return {.max_string = memory_.OneIn(2) ? 4096 : kMax[memory_.Below(std::size(kMax))],
            .kernel_string_rules = memory_.OneIn(3)};
  }

  Registers SomeRegisters() {
    Registers registers;
    for (uint64_t& value : registers.general)
      value = memory_.OneIn(8) ? memory_.Below(5000) : memory_.Address();
    registers[lang::Reg::kSp] = stack_.address() + kStackTop - 2048 - 8 * memory_.Below(8);
    registers.flags = 0x202 | (memory_.random()() & 0xcd5);
    return registers;
  }

  // What the trap path would see at the site.
  lang::testing::SelfContext ContextOf(const Registers& registers, uint64_t site) {
    lang::testing::SelfContext context;
    for (size_t i = 0; i < registers.general.size(); ++i)
      context.regs.values[i] = registers.general[i];
    context.regs[lang::Reg::kSp] -= 8;  // the return address
    context.regs[lang::Reg::kIp] = site;
    context.regs[lang::Reg::kCs] = 0x33;
    context.regs[lang::Reg::kSs] = 0x2b;
    context.regs[lang::Reg::kFlags] = registers.flags;
    context.regs[lang::Reg::kOrigAx] = ~uint64_t{0};
    context.base = kFileBase;
    return context;
  }

  HoledMemory memory_;
  Mapping stack_{kStackTop + (16 << 10)};
  Memory ring_{1 << 20};
};

}  // namespace probed::detour::testing
