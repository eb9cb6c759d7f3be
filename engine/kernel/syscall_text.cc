#include "engine/kernel/syscall_text.h"

#include <charconv>
#include <cstring>

namespace probed::kernel {
namespace {

constexpr std::string_view kEnter = "sys_enter_";
constexpr std::string_view kExit = "sys_exit_";
constexpr uint32_t kValueBytes = 8;

void AppendHex(uint64_t value, std::string& out) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, 16).ptr;
  out.append(digits, end);
}

}  // namespace

std::optional<SyscallText> SyscallText::For(const std::string& group, const EventFormat& format) {
  if (group != "syscalls") return std::nullopt;
  const bool enters = format.name.starts_with(kEnter);
  if (!enters && !format.name.starts_with(kExit)) return std::nullopt;
  SyscallText text;
  text.name_ = "sys_" + format.name.substr(enters ? kEnter.size() : kExit.size());
  for (const FormatField& field : format.fields) {
    if (field.name == "__syscall_nr") continue;
    if (field.place != FormatField::Place::kHere || field.size != kValueBytes) return std::nullopt;
    const std::string separator = text.arguments_.empty() ? "(" : ", ";
    text.arguments_.push_back(
        {enters ? separator + field.name + ": " : std::string(" -> "), field.offset});
  }
  if (enters) text.end_ = text.arguments_.empty() ? "()" : ")";
  return text;
}

std::string_view SyscallText::Print(std::span<const std::byte> record) {
  text_ = name_;
  for (const Argument& argument : arguments_) {
    uint64_t value = 0;
    std::memcpy(&value, record.data() + argument.offset, sizeof(value));
    text_ += argument.label;
    if (value >= 10 || end_.empty()) text_ += "0x";  // a result always has it
    AppendHex(value, text_);
  }
  return text_ += end_;
}

}  // namespace probed::kernel
