#pragma once
// Where control may enter a module's code, from its bytes alone: branch targets, jump tables,
// landing pads, address constants. The proof that a jump may be written over several instructions.
// Pure; built once per file, then immutable and usable from any thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/arch/x86_64/instruction.h"

namespace probed::arch {

// All addresses are link addresses of the file.
struct CodeRange {
  uint64_t start = 0, end = 0;
};

struct ModuleImage {
  struct Segment {
    uint64_t address = 0;
    std::span<const uint8_t> bytes;
    bool executable = false;
  };
  std::vector<Segment> segments;     // file-backed parts of all PT_LOADs
  std::vector<CodeRange> functions;  // from symbols and FDEs, ascending, may touch
  std::vector<uint64_t> entries;     // landing pads, relocation addends, symbols, entry point
  bool position_independent = true;  // else any aligned word may hold a code address
};

// How the bytes of a site can become a jump (Instruction Punning, PLDI 2017; E9Patch, PLDI 2020).
enum class Tactic : uint8_t {
  kNone,       // int3 it stays; `rule` says why
  kJump,       // five bytes, whole instructions, all displaced
  kPunned,     // the displacement's last bytes are those of the instructions that follow
  kShortJump,  // two bytes to an island of padding that holds the long jump
};

struct PatchPlan {
  Tactic tactic = Tactic::kNone;
  std::string rule;                 // kNone: the rule that forbids it, in words for the user
  std::vector<Instruction> region;  // displaced instructions
  uint8_t jump_length = 0;          // bytes that are written at the site
  // kPunned: where the detour may stand: low <= address < high (steps of 1 << step_bits).
  uint64_t low = 0, high = 0;
  uint8_t fixed_bytes = 0;  // of the 4 displacement bytes, the last ones that cannot be chosen
  // kShortJump: the island's link address, with 5 bytes of padding to be replaced there.
  uint64_t island = 0;
};

class FlowMap {
 public:
  static Result<std::shared_ptr<const FlowMap>> Analyze(const ModuleImage& image);
  ~FlowMap();

  // Whether control may arrive at `address` other than by running into it from above.
  bool IsEntered(uint64_t address) const;
  // How a probe at `address` may be optimized. `address` is an instruction's start.
  PatchPlan Plan(uint64_t address) const;

  struct Totals {
    uint64_t functions = 0, instructions = 0, entries = 0;
  };
  Totals totals() const;

 private:
  struct State;
  explicit FlowMap(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace probed::arch
