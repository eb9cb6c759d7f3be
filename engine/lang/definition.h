#pragma once
// One accepted probe line, ready to be planned and run.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/lang/calling_convention.h"
#include "engine/lang/schema.h"

namespace probed::lang {

class FetchProgram;  // fetch_program.h: all arguments of one probe, compiled

struct Definition {
  ProbeKind kind = ProbeKind::kEntry;
  std::string group;
  std::string event;
  std::string path;             // exactly as typed
  uint64_t offset = 0;          // file offset (resolved when a symbol was typed)
  int process = 0;              // not 0: in its memory, `offset` being the address
  std::string symbol;           // "name[+off]" when typed in the extended dialect
  uint64_t ref_ctr_offset = 0;  // 0 = none
  uint32_t max_active = 0;      // rN of the extended dialect; 0 = default
  CallingConvention convention = CallingConvention::kSystemV;  // of $argN
  uint32_t entry_arguments = 0;  // highest $argN a return probe wants captured at entry
  uint64_t device = 0;           // identity of the file when it was defined
  uint64_t inode = 0;
  std::string readback;  // canonical line; feeding it back recreates the probe
  EventSchema schema;
  std::shared_ptr<const FetchProgram> program;
};

}  // namespace probed::lang
