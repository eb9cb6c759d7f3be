#pragma once
// Where in a program's own executable memory a thread makes a system call for us, and where it ends
// up if we die meanwhile. Nothing of the program is overwritten, and bytes in the middle of other
// instructions serve as well: the processor does not care.

#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "elf/module_map.h"
#include "engine/sys/process_memory.h"

namespace probed::tracee {

struct SyscallPlace {
  RemoteAddr instruction;  // `syscall`
  // Where a jump to itself is. Not 0: `ret` follows the instruction, and leads there if the stack
  // says so. 0: what follows is the program's.
  RemoteAddr parking;

  bool can_park() const { return parking.value != 0; }
  bool Holds(RemoteAddr ip) const;
  bool StandsIn(const sys::ProcessMemory& memory) const;
};

// One that can park if there is one. NO_SYSCALL_INSTRUCTION, PROCESS_GONE.
Result<SyscallPlace> FindSyscallPlace(const sys::ProcessMemory& memory,
                                      const std::vector<elf::Mapping>& mappings);

}  // namespace probed::tracee
