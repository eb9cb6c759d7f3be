#pragma once
// Where control may enter a module's code, from its bytes alone: branch targets, jump tables,
// landing pads, address constants. The proof that a jump may be written over several instructions.
// Pure; built once per file, then immutable and usable from any thread.
//
// What is assumed: instructions run one after the other from a function's start, from a branch
// target, or from an address that the file names (symbol, relocation, pointer in data, operand,
// jump table); nothing computes an address in code in another way. Functions that show signs of
// doing so, or whose bytes do not decode, are in doubt: there, only whole single instructions are
// replaced.
//
// endbr64 is displaced like any other instruction. An indirect branch then lands on a jump, which
// only a processor that enforces indirect branch tracking objects to; Linux does not for user
// space. Who writes jumps must not do so in a process whose /proc/PID/status lists `ibt` among its
// x86_Thread_features.

#include <cstdint>
#include <memory>
#include <optional>
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
  std::vector<CodeRange> functions;  // from symbols and FDEs, in any order, may overlap
  std::vector<uint64_t> entries;     // landing pads, relocation addends, symbols, entry point
  bool position_independent = true;  // else a 32-bit constant may be an address
};

// How the bytes of a site can become a jump (Instruction Punning, PLDI 2017; E9Patch, PLDI 2020).
enum class Tactic : uint8_t {
  kNone,       // int3 it stays; `rule` says why
  kJump,       // five bytes, whole instructions, all displaced
  kShortJump,  // two bytes to an island of padding that holds the long jump
  kPunned,     // the displacement's last bytes are those of the instructions that follow
};

std::string_view TacticName(Tactic tactic);  // "jump", "short jump", "punned jump"; "" for kNone

// Why the five bytes of a site cannot be replaced.
enum class Rule : uint8_t {
  kNone,
  kNoFunction,       // not in a function that symbols or unwind tables name
  kNotAStart,        // no instruction starts here as the function is read
  kUndecodable,      // the two decoders disagree, or one fails
  kEntered,          // control may arrive in the middle of the region
  kDoubt,            // control flow of the function is not known for sure
  kNotRelocatable,   // an instruction cannot run elsewhere
  kFunctionTooShort  // the function ends, and what follows is not padding
};
std::string_view RuleName(Rule rule);  // "" for kNone

struct PatchPlan {
  Tactic tactic = Tactic::kNone;
  Rule rule = Rule::kNone;          // what forbids kJump, also when another tactic was found
  std::string why;                  // the same in words for the user
  std::vector<Instruction> region;  // displaced instructions
  // Length of the jump. Its bytes, and those of the island, must not be changed by anyone else
  // while the jump is there, even the `fixed_bytes` that keep their value.
  uint8_t jump_length = 0;
  // kPunned: low <= address of the detour < high; of the 4 displacement bytes the last
  // `fixed_bytes` are what stands there already. A negative `low` wraps around (in a module
  // that is linked at a fixed address, both are in user space).
  uint64_t low = 0, high = 0;
  uint8_t fixed_bytes = 0;
  // kShortJump: the island's address, with 5 bytes of padding to be replaced there. Other sites may
  // have been told the same island.
  uint64_t island = 0;
};

class FlowMap {
 public:
  // NO_CODE, CODE_TOO_LARGE, FLOW_TOO_COMPLEX.
  static Result<std::shared_ptr<const FlowMap>> Analyze(const ModuleImage& image);
  ~FlowMap();

  // Whether control may arrive at `address` other than by running into it from above.
  bool IsEntered(uint64_t address) const;
  // Whether the function there may be entered at other places too.
  bool IsInDoubt(uint64_t address) const;
  // Whether an instruction starts at `address`, as its function is read from its start.
  bool IsStart(uint64_t address) const;
  // The first such instruction after `address`; nothing behind the last one of its segment.
  std::optional<uint64_t> NextStart(uint64_t address) const;
  // How a probe at `address` may be optimized. `address` is an instruction's start.
  PatchPlan Plan(uint64_t address) const;

  struct Totals {
    uint64_t functions = 0, instructions = 0, entries = 0;
    uint64_t doubtful_functions = 0;
  };
  Totals totals() const;

 private:
  struct State;
  explicit FlowMap(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace probed::arch
