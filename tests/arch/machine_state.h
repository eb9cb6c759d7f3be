#pragma once
// Everything an instruction can read or change in a thread, and how two runs of it are compared.

#include <signal.h>
#include <sys/user.h>

#include <cstdint>
#include <string>
#include <vector>

namespace probed::arch {

struct MachineState {
  user_regs_struct regs{};
  std::vector<uint8_t> xstate;  // XSAVE area in the standard format
  std::vector<uint8_t> memory;  // data and stack pages of the puppet
};

// How a run ended.
struct Outcome {
  bool ran = false;       // false: the mechanism does not apply to this instruction
  bool finished = false;  // went on to regs.rip; otherwise faulted at regs.rip
  int signal = 0;
  int signal_code = 0;
  uint64_t signal_address = 0;
  std::string trouble = {};  // what the harness itself did not understand
  MachineState state = {};
};

// Bit mask of the state components this processor and kernel keep.
uint64_t SupportedComponents(const std::vector<uint8_t>& xstate);

// Where a component lies in the standard format (CPUID leaf 0xd). Empty size: not there.
struct ComponentPlace {
  uint32_t offset = 0;
  uint32_t size = 0;
};
ComponentPlace PlaceOfComponent(int component);

// Empty when equal. The x87 instruction pointer is allowed to name `copy` where the native run
// names `original`: an x87 instruction records its own address and no copy can undo that.
std::string Difference(const Outcome& native, const Outcome& other, uint64_t original,
                       uint64_t copy);

}  // namespace probed::arch
