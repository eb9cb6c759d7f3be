#pragma once
// A traced child that owns nothing but a few shared pages: one instruction at a time is put into
// it, and the parent sees every register, vector and byte before and after.

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "engine/arch/x86_64/emulate.h"
#include "tests/arch/machine_state.h"

namespace probed::arch {

// Where things are in the child, relative to Puppet::base().
namespace layout {
inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kCode = 0;  // 2 pages of int3; the instruction stands in the middle
inline constexpr uint64_t kInstruction = kCode + 0x1000 - 9;  // crosses the page when long
inline constexpr uint64_t kNearArena = 1 << 20;               // 1 MiB away
inline constexpr uint64_t kFarArena = 1536ULL << 20;          // 1.5 GiB away
inline constexpr uint64_t kRemoteArena = 1ULL << 45;          // out of reach of a rel32
inline constexpr uint64_t kCopyInArena = 0x100;
// Data: two writable pages, a hole, one writable page, one read-only page, a hole.
inline constexpr uint64_t kData = 768ULL << 20;
inline constexpr uint64_t kDataWritable = 2 * kPage;
inline constexpr uint64_t kDataSecond = kData + 3 * kPage;
inline constexpr uint64_t kDataReadOnly = kData + 4 * kPage;
// Stack: four writable pages with holes around.
inline constexpr uint64_t kStack = 896ULL << 20;
inline constexpr uint64_t kStackSize = 4 * kPage;
// The shared image of data and stack: the writable and read-only pages one after the other.
inline constexpr uint64_t kImageSize = 2 * kPage + kPage + kPage + kStackSize;

// Where a stack address is in the image; past its end for any other address.
constexpr uint64_t StackInImage(uint64_t base, uint64_t address) {
  uint64_t offset = address - base - kStack;
  return offset < kStackSize ? kImageSize - kStackSize + offset : kImageSize;
}
}  // namespace layout

struct Stop {
  int signal = 0;
  int code = 0;
  uint64_t address = 0;
};

class Puppet {
 public:
  // `base`: where the layout starts in the child; below 2 GiB for instructions with 32-bit
  // addresses. Null when the child cannot be made.
  static std::unique_ptr<Puppet> Create(uint64_t base);
  ~Puppet();
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;

  pid_t pid() const { return pid_; }
  uint64_t base() const { return base_; }
  const MachineState& initial() const { return initial_; }

  void FillCode(std::span<const uint8_t> instruction);
  void FillArena(uint64_t arena, std::span<const uint8_t> copy);

  void SetState(const MachineState& state);
  MachineState GetState();

  // False when the child did not stop again.
  bool Continue(Stop& stop);
  bool Step(Stop& stop);

 private:
  Puppet(uint64_t base, UniqueFd memory);
  bool Start();
  bool Resume(int request, Stop& stop);
  void Watch(const std::stop_token& token);

  uint64_t base_;
  UniqueFd memory_;
  uint8_t* view_ = nullptr;
  pid_t pid_ = -1;
  MachineState initial_;
  std::atomic<uint64_t> resumes_{0};
  std::jthread watchdog_;
};

// The puppet's memory as the daemon reaches it.
class PuppetMemory : public MemoryBus {
 public:
  explicit PuppetMemory(pid_t pid) : pid_(pid) {}
  bool Load(uint64_t address, std::span<std::byte> out) override;
  bool Store(uint64_t address, std::span<const std::byte> bytes) override;

 private:
  pid_t pid_;
};

}  // namespace probed::arch
