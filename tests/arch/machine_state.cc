#include "tests/arch/machine_state.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace probed::arch {
namespace {

constexpr size_t kComponentMaskAt = 464;  // sw_reserved: what the kernel keeps
// Of processes that have asked for them only (arch_prctl(2), ARCH_REQ_XCOMP_PERM).
constexpr uint64_t kTiles = uint64_t{3} << 17;
constexpr size_t kHeaderAt = 512;  // XSTATE_BV
constexpr size_t kX87PointerAt = 8;
constexpr int kComponents = 20;

template <class T>
T ReadAt(const std::vector<uint8_t>& bytes, size_t offset) {
  T value{};
  if (offset + sizeof value <= bytes.size()) std::memcpy(&value, &bytes[offset], sizeof value);
  return value;
}

struct RegisterName {
  const char* name;
  unsigned long long user_regs_struct::*member;
};

constexpr RegisterName kNames[] = {
    {"rip", &user_regs_struct::rip},         {"eflags", &user_regs_struct::eflags},
    {"rax", &user_regs_struct::rax},         {"rbx", &user_regs_struct::rbx},
    {"rcx", &user_regs_struct::rcx},         {"rdx", &user_regs_struct::rdx},
    {"rsi", &user_regs_struct::rsi},         {"rdi", &user_regs_struct::rdi},
    {"rbp", &user_regs_struct::rbp},         {"rsp", &user_regs_struct::rsp},
    {"r8", &user_regs_struct::r8},           {"r9", &user_regs_struct::r9},
    {"r10", &user_regs_struct::r10},         {"r11", &user_regs_struct::r11},
    {"r12", &user_regs_struct::r12},         {"r13", &user_regs_struct::r13},
    {"r14", &user_regs_struct::r14},         {"r15", &user_regs_struct::r15},
    {"cs", &user_regs_struct::cs},           {"ss", &user_regs_struct::ss},
    {"ds", &user_regs_struct::ds},           {"es", &user_regs_struct::es},
    {"fs", &user_regs_struct::fs},           {"gs", &user_regs_struct::gs},
    {"fs_base", &user_regs_struct::fs_base}, {"gs_base", &user_regs_struct::gs_base},
};

std::string RegisterDifference(const user_regs_struct& native, const user_regs_struct& other) {
  std::string text;
  for (const auto& [name, member] : kNames) {
    if (native.*member == other.*member) continue;
    text += fmt::format(" {} native {:#x} here {:#x}", name, native.*member, other.*member);
  }
  return text;
}

std::string FaultDifference(const Outcome& native, const Outcome& other) {
  if (native.finished != other.finished) {
    return fmt::format(" native {} here {} (signal {} code {} and {} code {}, rip {:#x})",
                       native.finished ? "finished" : "faulted",
                       other.finished ? "finished" : "faulted", native.signal, native.signal_code,
                       other.signal, other.signal_code, other.state.regs.rip);
  }
  if (native.finished) return {};
  if (native.signal == other.signal && native.signal_code == other.signal_code &&
      native.signal_address == other.signal_address) {
    return {};
  }
  return fmt::format(" signal native {}/{} at {:#x} here {}/{} at {:#x}", native.signal,
                     native.signal_code, native.signal_address, other.signal, other.signal_code,
                     other.signal_address);
}

// A component that XSTATE_BV leaves out is in its initial state, whatever its bytes say.
std::vector<uint8_t> ComponentBytes(const std::vector<uint8_t>& xstate, int component) {
  ComponentPlace place = PlaceOfComponent(component);
  std::vector<uint8_t> bytes(place.size);
  bool present = (ReadAt<uint64_t>(xstate, kHeaderAt) >> component & 1) != 0;
  if (place.offset + place.size > xstate.size()) return bytes;
  if (present) std::memcpy(bytes.data(), &xstate[place.offset], place.size);
  if (!present && component == 0) bytes[0] = 0x7f, bytes[1] = 0x03;  // FCW after FNINIT
  return bytes;
}

void AllowOwnAddress(std::vector<uint8_t>& native, std::vector<uint8_t>& other, uint64_t original,
                     uint64_t copy) {
  bool displaced = ReadAt<uint64_t>(native, kX87PointerAt) == original &&
                   ReadAt<uint64_t>(other, kX87PointerAt) == copy;
  if (displaced) std::memcpy(&other[kX87PointerAt], &native[kX87PointerAt], sizeof(uint64_t));
}

// AMD's processors save opcode and pointers of the last x87 instruction only while it has an
// exception pending, so every look of a tracer clears them.
void AllowClearedPointers(std::vector<uint8_t>& native, std::vector<uint8_t>& other) {
  static const bool is_amd = __builtin_cpu_is("amd") != 0;
  constexpr ptrdiff_t kBegin = 6, kEnd = 24;  // FOP, FIP, FDP in the FXSAVE layout
  auto is_clear = [](const std::vector<uint8_t>& bytes) {
    return std::all_of(bytes.begin() + kBegin, bytes.begin() + kEnd,
                       [](uint8_t byte) { return byte == 0; });
  };
  if (is_amd && (is_clear(native) || is_clear(other)))
    std::copy(native.begin() + kBegin, native.begin() + kEnd, other.begin() + kBegin);
}

std::string VectorDifference(const Outcome& native, const Outcome& other, uint64_t original,
                             uint64_t copy) {
  std::string text;
  for (int component = 0; component < kComponents; ++component) {
    if ((SupportedComponents(native.state.xstate) >> component & 1) == 0) continue;
    auto mine = ComponentBytes(native.state.xstate, component);
    auto theirs = ComponentBytes(other.state.xstate, component);
    if (component == 0) AllowOwnAddress(mine, theirs, original, copy);
    if (component == 0) AllowClearedPointers(mine, theirs);
    for (size_t at = 0; at < mine.size(); ++at) {
      if (mine[at] == theirs[at]) continue;
      text += fmt::format(" xstate component {} byte {} native {:02x} here {:02x}", component, at,
                          mine[at], theirs[at]);
      break;
    }
  }
  if (ReadAt<uint32_t>(native.state.xstate, 24) != ReadAt<uint32_t>(other.state.xstate, 24)) {
    text += " mxcsr";
  }
  return text;
}

std::string MemoryDifference(const std::vector<uint8_t>& native,
                             const std::vector<uint8_t>& other) {
  if (native == other) return {};
  size_t at = 0;
  while (native[at] == other[at])
    ++at;
  return fmt::format(" memory byte {:#x} native {:02x} here {:02x}", at, native[at], other[at]);
}

}  // namespace

uint64_t SupportedComponents(const std::vector<uint8_t>& xstate) {
  return ReadAt<uint64_t>(xstate, kComponentMaskAt) & ~kTiles;
}

ComponentPlace PlaceOfComponent(int component) {
  if (component == 0) return {0, 160};  // x87, with MXCSR in it
  if (component == 1) return {160, 256};
  static const auto places = [] {
    std::array<ComponentPlace, kComponents> result{};
    for (unsigned index = 2; index < kComponents; ++index) {
      unsigned size = 0, offset = 0, ecx = 0, edx = 0;
      __cpuid_count(0xd, index, size, offset, ecx, edx);
      if ((ecx & 1) == 0) result[index] = {offset, size};  // supervisor states are not ours
    }
    return result;
  }();
  return places[static_cast<size_t>(component)];
}

std::string Difference(const Outcome& native, const Outcome& other, uint64_t original,
                       uint64_t copy) {
  if (!other.trouble.empty()) return " " + other.trouble;
  return FaultDifference(native, other) + RegisterDifference(native.state.regs, other.state.regs) +
         VectorDifference(native, other, original, copy) +
         MemoryDifference(native.state.memory, other.state.memory);
}

}  // namespace probed::arch
