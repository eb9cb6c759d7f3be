#pragma once
// A stopped thread as fetch programs and the emulator see it. Lives for one hit.

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/arch/x86_64/emulate.h"
#include "engine/lang/fetch_context.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

lang::RegisterFile ToRegisterFile(const user_regs_struct& regs);

class StoppedContext final : public lang::FetchContext {
 public:
  // The registers are those of `regs` with the ip replaced.
  StoppedContext(tracee::Stopped& stopped, const user_regs_struct& regs, uint64_t ip);

  // What differs between the probes of one hit.
  void Aim(uint64_t file_base, std::span<const uint64_t> entry_arguments);

  const lang::RegisterFile& registers() const override { return registers_; }
  size_t ReadMemory(uint64_t address, std::span<std::byte> out) override;
  bool ReadVector(int number, lang::VectorRegister& out) override;
  std::string_view comm() override;
  uint32_t cpu() { return stopped_.cpu(); }
  uint64_t file_base() const override { return file_base_; }
  std::span<const uint64_t> entry_arguments() const override { return entry_arguments_; }

 private:
  tracee::Stopped& stopped_;
  lang::RegisterFile registers_;
  std::string comm_;
  uint64_t file_base_ = 0;
  std::span<const uint64_t> entry_arguments_;
};

class StoppedMemoryBus final : public arch::MemoryBus {
 public:
  explicit StoppedMemoryBus(tracee::Stopped& stopped) : stopped_(stopped) {}
  bool Load(uint64_t address, std::span<std::byte> out) override;
  bool Store(uint64_t address, std::span<const std::byte> bytes) override;

 private:
  tracee::Stopped& stopped_;
};

// What code of ours has stored on the program's stack, which the program itself may be allowed to
// write only, or have hidden (PR_SET_DUMPABLE).
class OwnFrameBus final : public arch::MemoryBus {
 public:
  explicit OwnFrameBus(tracee::Stopped& stopped) : stopped_(stopped) {}
  bool Load(uint64_t address, std::span<std::byte> out) override {
    return stopped_.ReadMemory(RemoteAddr{address}, out).ok();
  }
  bool Store(uint64_t, std::span<const std::byte>) override { return false; }

 private:
  tracee::Stopped& stopped_;
};

}  // namespace probed::probe
