#pragma once
// The text of the syscalls:sys_enter_* and sys_exit_* events, which `trace` does not show by their
// print fmt (kernel/trace/trace_syscalls.c, print_syscall_enter). Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/event_format.h"

namespace probed::kernel {

class SyscallText {
 public:
  // Nothing: another kind of event.
  static std::optional<SyscallText> For(const std::string& group, const EventFormat& format);

  // "sys_openat(dfd: 0x3, filename: 0x7f..)" or "sys_openat -> 0x3", valid until the next call. The
  // record holds all fields of the format.
  std::string_view Print(std::span<const std::byte> record);

 private:
  struct Argument {
    std::string label;  // "(dfd: ", ", mode: "
    uint32_t offset = 0;
  };
  std::string name_;
  std::vector<Argument> arguments_;
  std::string_view end_;
  std::string text_;
};

}  // namespace probed::kernel
