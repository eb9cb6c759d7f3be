#include "engine/probe/function_exits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/plural.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/probe/function_extent.h"

namespace probed::probe {
namespace {

using arch::Instruction;
using arch::Operand;
using arch::OperationKind;

constexpr std::string_view kCold = ".cold";
constexpr size_t kMostParts = 8;
// Between the instructions that take a word from a jump table and the jump, as they are scheduled.
constexpr size_t kTableWindow = 8;
constexpr uint8_t kNoTrack = 0x3e;  // only compilers' jumps by tables have it (-fcf-protection)

struct Placed {
  uint64_t address = 0;
  Instruction instruction;
};

struct Part {
  elf::FunctionBounds bounds;
  std::vector<Placed> code;
};

bool IsPadding(const Instruction& instruction) {
  return instruction.operation.kind == OperationKind::kNop || instruction.bytes[0] == 0xcc;
}

bool IsUnconditionalJump(const Instruction& instruction) {
  return instruction.operation.kind == OperationKind::kJump;
}

bool IsIndirect(const Instruction& instruction) {
  return IsUnconditionalJump(instruction) &&
         instruction.operation.source.kind != Operand::Kind::kImmediate;
}

// Never goes on with what stands behind it; a call that ends a function does not come back, nor
// does a system call there (exit, rt_sigreturn).
bool Ends(const Instruction& instruction) {
  const auto& bytes = instruction.bytes;
  const bool is_ud = bytes[0] == 0x0f && (bytes[1] == 0x0b || bytes[1] == 0xb9);
  const bool is_hlt = bytes[0] == 0xf4;
  return is_ud || is_hlt || instruction.is_return || instruction.is_call ||
         instruction.is_syscall || instruction.is_far || IsUnconditionalJump(instruction);
}

std::optional<uint64_t> TargetOf(const Placed& placed) {
  const Operand& target = placed.instruction.operation.source;
  if (!placed.instruction.is_branch || target.kind != Operand::Kind::kImmediate)
    return std::nullopt;
  return placed.address + placed.instruction.length + static_cast<uint64_t>(target.immediate);
}

// What `mov TABLE(,%index,8), %reg` and `jmp *TABLE(,%index,8)` name.
std::optional<uint64_t> AbsoluteTable(const Instruction& instruction) {
  const auto& bytes = instruction.bytes;
  const auto& memory = instruction.operation.source.memory;
  if (IsIndirect(instruction) && instruction.operation.source.kind == Operand::Kind::kMemory) {
    const bool is_table = memory.base == arch::kNoRegister && memory.index != arch::kNoRegister;
    return is_table ? std::optional<uint64_t>(static_cast<uint64_t>(memory.displacement))
                    : std::nullopt;
  }
  // REX.W 8b /r, ModRM: a SIB byte and no base but a 32-bit displacement.
  const bool is_load = instruction.length == 8 && (bytes[0] & 0xf8) == 0x48 && bytes[1] == 0x8b &&
                       (bytes[2] & 0xc7) == 0x04 && (bytes[3] & 0x07) == 0x05;
  if (!is_load) return std::nullopt;
  int32_t displacement = 0;
  std::memcpy(&displacement, &bytes[4], sizeof displacement);
  return static_cast<uint64_t>(int64_t{displacement});
}

// An unwinder's way into a handler, and jumps that are written as a ret: "mov %rcx, %rsp",
// "push %rax", "mov %rax, (%rsp)" in front of it.
bool ChoosesReturnAddress(const Instruction& instruction) {
  const OperationKind kind = instruction.operation.kind;
  const bool is_switch =
      kind == OperationKind::kMove && instruction.operation.destination == arch::kRsp;
  const auto& bytes = instruction.bytes;
  const bool is_store = instruction.length == 4 && (bytes[0] & 0xfb) == 0x48 && bytes[1] == 0x89 &&
                        (bytes[2] & 0xc7) == 0x04 && bytes[3] == 0x24;
  return kind == OperationKind::kPush || is_switch || is_store;
}

class Finder {
 public:
  explicit Finder(const elf::File& file) : file_(file) {}

  Result<FunctionExits> Find(const elf::FunctionBounds& function) {
    PROBED_RETURN_IF_ERROR(Read(function));
    for (size_t i = 0; i < parts_.size(); ++i)
      PROBED_RETURN_IF_ERROR(FollowIntoParts(i));
    FunctionExits exits;
    for (const Part& part : parts_)
      Classify(part, exits);
    std::ranges::sort(exits.returns);
    return exits;
  }

 private:
  Status Read(const elf::FunctionBounds& bounds) {
    const auto offset = file_.ToOffset(bounds.start);
    const auto bytes = offset ? file_.Bytes(*offset, bounds.size) : std::vector<uint8_t>();
    Part part{.bounds = bounds, .code = {}};
    for (size_t at = 0; at < bytes.size();) {
      const uint64_t address = bounds.start.value + at;
      PROBED_TRY(auto instruction, arch::Decode(std::span(bytes).subspan(at), address));
      at += instruction.length;
      part.code.push_back({address, std::move(instruction)});
    }
    parts_.push_back(std::move(part));
    return {};
  }

  Status FollowIntoParts(size_t index) {
    for (size_t i = 0; i < parts_[index].code.size(); ++i) {
      const auto target = TargetOf(parts_[index].code[i]);
      if (!target || Holds(*target) || parts_.size() >= kMostParts) continue;
      const auto start = PartAt(LinkAddr{*target});
      if (!start) continue;
      PROBED_TRY(const auto extent, ExtentOf(file_, *start));
      PROBED_RETURN_IF_ERROR(Read(extent));
    }
    return {};
  }

  // Where the code around `address`, which a jump leads to, begins, if that is set aside from this
  // function. Without a name: a function that is called has its return address on top.
  std::optional<LinkAddr> PartAt(LinkAddr address) const {
    const auto around = file_.FunctionAt(address);
    if (!around) return std::nullopt;
    const auto names = file_.AliasesAt(around->start);
    if (names.empty()) {
      const bool is_part = file_.ReturnAddressAt(address) == elf::ReturnAddress::kElsewhere;
      return is_part && around->symbol.empty() ? std::optional(around->start) : std::nullopt;
    }
    for (const auto& own : file_.AliasesAt(parts_.front().bounds.start)) {
      auto is_cold = [&](const elf::Symbol& symbol) {
        return symbol.name.starts_with(own.name) &&
               symbol.name.find(kCold, own.name.size()) == own.name.size() &&
               IsColdName(symbol.name);
      };
      if (std::ranges::any_of(names, is_cold)) return around->start;
    }
    return std::nullopt;
  }

  bool Holds(uint64_t address) const {
    return std::ranges::any_of(parts_, [&](const Part& part) {
      return address - part.bounds.start.value < part.bounds.size;
    });
  }

  void Classify(const Part& part, FunctionExits& exits) const {
    const Instruction* last = nullptr;
    for (size_t i = 0; i < part.code.size(); ++i) {
      const Placed& placed = part.code[i];
      if (!IsPadding(placed.instruction)) last = &placed.instruction;
      const auto target = TargetOf(placed);
      if (target && !Holds(*target)) ++exits.other_functions;
      if (IsIndirect(placed.instruction)) ClassifyIndirect(part, i, exits);
      if (placed.instruction.is_return) ClassifyReturn(part, i, exits);
    }
    if (last != nullptr && !Ends(*last)) ++exits.other_functions;
  }

  // What the unwind tables say at a ret is no help: those of hand-written code are often wrong
  // there.
  void ClassifyReturn(const Part& part, size_t index, FunctionExits& exits) const {
    const auto offset = file_.ToOffset(LinkAddr{part.code[index].address});
    if (!offset) return;
    if (index > 0 && ChoosesReturnAddress(part.code[index - 1].instruction)) {
      ++exits.switches;
    } else {
      exits.returns.push_back(offset->value);
    }
  }

  void ClassifyIndirect(const Part& part, size_t index, FunctionExits& exits) const {
    const Operand& target = part.code[index].instruction.operation.source;
    const bool is_fixed =
        target.kind == Operand::Kind::kMemory && target.memory.index == arch::kNoRegister &&
        (target.memory.base == arch::kRip || target.memory.base == arch::kNoRegister);
    if (is_fixed) {
      ++exits.other_functions;  // by the GOT, or a pointer to a function
    } else if (!IsByTable(part, index)) {
      ++exits.unknown_jumps;
    }
  }

  bool IsByTable(const Part& part, size_t index) const {
    const Instruction& jump = part.code[index].instruction;
    if (jump.bytes[0] == kNoTrack) return true;
    if (auto table = AbsoluteTable(jump)) return HoldsAddresses(*table);
    if (jump.operation.source.kind != Operand::Kind::kRegister) return false;
    const size_t first = index - std::min(index, kTableWindow);
    for (size_t i = index; i-- > first;) {
      const Instruction& before = part.code[i].instruction;
      if (before.is_call || before.is_return) return false;
      if (auto table = AbsoluteTable(before)) return HoldsAddresses(*table);
      const arch::Operation& sum = before.operation;
      if (sum.kind != OperationKind::kAdd || sum.destination != jump.operation.source.reg) continue;
      if (sum.source.kind != Operand::Kind::kImmediate) return NamesTable(part);
      return HoldsAddresses(static_cast<uint64_t>(sum.source.immediate));
    }
    return false;
  }

  // An address outside of code from which 4-byte distances lead into the function.
  bool NamesTable(const Part& part) const {
    return std::ranges::any_of(part.code, [&](const Placed& placed) {
      const auto& operation = placed.instruction.operation;
      if (operation.kind != OperationKind::kLea || operation.source.memory.base != arch::kRip)
        return false;
      const uint64_t table = placed.address + placed.instruction.length +
                             static_cast<uint64_t>(int64_t{operation.source.memory.displacement});
      const auto distance = Load<int32_t>(table);
      return distance && !Holds(table) && Holds(table + static_cast<uint64_t>(int64_t{*distance}));
    });
  }

  bool HoldsAddresses(uint64_t table) const {
    const auto address = Load<uint64_t>(table);
    return address && Holds(*address);
  }

  template <class Word>
  std::optional<Word> Load(uint64_t address) const {
    const auto offset = file_.ToOffset(LinkAddr{address});
    const auto bytes = offset ? file_.Bytes(*offset, sizeof(Word)) : std::vector<uint8_t>();
    if (bytes.size() != sizeof(Word)) return std::nullopt;
    Word word{};
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }

  const elf::File& file_;
  std::vector<Part> parts_;
};

void AddCount(uint32_t count, std::string_view noun, std::string_view behind,
              std::vector<std::string>& words) {
  if (count == 0) return;
  words.push_back(fmt::format("{} {}", Plural(count, noun), behind));
}

}  // namespace

std::string FunctionExits::DescribeOthers() const {
  std::vector<std::string> words;
  AddCount(other_functions, "jump", "to other functions", words);
  AddCount(unknown_jumps, "indirect jump", "to where is not known", words);
  AddCount(switches, "ret", "to elsewhere than the caller", words);
  return fmt::format("{}", fmt::join(words, " and "));
}

bool IsColdName(std::string_view name) {
  const size_t suffix = name.rfind(kCold);
  if (suffix == std::string_view::npos) return false;
  const std::string_view rest = name.substr(suffix + kCold.size());
  return rest.empty() || rest.front() == '.';
}

Result<FunctionExits> FindExits(const elf::File& file, const elf::FunctionBounds& function) {
  return Finder(file).Find(function);
}

}  // namespace probed::probe
