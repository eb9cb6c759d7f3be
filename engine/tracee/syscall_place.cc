#include "engine/tracee/syscall_place.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace probed::tracee {
namespace {

constexpr std::array kSyscallReturn = {std::byte{0x0f}, std::byte{0x05}, std::byte{0xc3}};
constexpr auto kSyscall = std::span(kSyscallReturn).first<2>();
constexpr std::array kJumpToItself = {std::byte{0xeb}, std::byte{0xfe}};
// The program may have to wait for the search. In C libraries each is found within some pages.
constexpr size_t kMostOfMapping = size_t{2} << 20;
constexpr size_t kMostOfAll = size_t{16} << 20;

using Bytes = std::vector<std::byte>;

RemoteAddr Find(const elf::Mapping& mapping, const Bytes& bytes,
                std::span<const std::byte> wanted) {
  const void* found = ::memmem(bytes.data(), bytes.size(), wanted.data(), wanted.size());
  if (found == nullptr) return {};
  return mapping.start + static_cast<uint64_t>(static_cast<const std::byte*>(found) - bytes.data());
}

// Its memory went with it.
Error Gone() {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROCESS_GONE",
               .message = "the process has ended",
               .hint = "",
               .metadata = {}};
}

bool Stands(const sys::ProcessMemory& memory, RemoteAddr at, std::span<const std::byte> wanted) {
  std::array<std::byte, 3> bytes{};
  auto present = std::span(bytes).first(wanted.size());
  return memory.ReadSome(at, present) == wanted.size() &&
         std::equal(wanted.begin(), wanted.end(), present.begin());
}

}  // namespace

bool SyscallPlace::Holds(RemoteAddr ip) const {
  bool at_call = ip == instruction || ip == instruction + kSyscall.size();
  return at_call || (can_park() && ip == parking);
}

bool SyscallPlace::StandsIn(const sys::ProcessMemory& memory) const {
  if (instruction.value == 0) return false;
  if (!can_park()) return Stands(memory, instruction, kSyscall);
  return Stands(memory, instruction, kSyscallReturn) && Stands(memory, parking, kJumpToItself);
}

Result<SyscallPlace> FindSyscallPlace(const sys::ProcessMemory& memory,
                                      const std::vector<elf::Mapping>& mappings) {
  SyscallPlace parking, plain;
  size_t searched = 0, wanted = 0;
  for (const elf::Mapping& mapping : mappings) {
    // Memory without a name may be ours, of a daemon that died before too: what follows the
    // instruction in a trap handler of ours ends the program.
    if (!mapping.executable || !mapping.readable || mapping.path.empty()) continue;
    Bytes bytes(std::min<uint64_t>(mapping.end - mapping.start, kMostOfMapping));
    wanted += bytes.size();
    bytes.resize(memory.ReadSome(mapping.start, bytes));
    if (plain.instruction.value == 0) plain.instruction = Find(mapping, bytes, kSyscall);
    if (parking.instruction.value == 0) parking.instruction = Find(mapping, bytes, kSyscallReturn);
    if (!parking.can_park()) parking.parking = Find(mapping, bytes, kJumpToItself);
    if (parking.instruction.value != 0 && parking.can_park()) return parking;
    searched += bytes.size();
    if (searched > kMostOfAll && plain.instruction.value != 0) break;
  }
  if (plain.instruction.value != 0) return plain;
  if (wanted > 0 && searched == 0) return Gone();
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "NO_SYSCALL_INSTRUCTION",
               .message = "the program has no system call instruction in its executable memory",
               .hint = "",
               .metadata = {}};
}

}  // namespace probed::tracee
