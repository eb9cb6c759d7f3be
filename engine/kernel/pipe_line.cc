#include "engine/kernel/pipe_line.h"

#include <algorithm>
#include <charconv>

namespace probed::kernel {
namespace {

constexpr size_t kCommBytes = 16;  // padded on the left
// The letters of common_flags, in trace_print_lat_fmt's order.
constexpr uint8_t kIrqsOff = 0x01, kNeedResched = 0x04, kHardIrq = 0x08, kSoftIrq = 0x10,
                  kPreemptResched = 0x20, kNmi = 0x40, kBottomHalfOff = 0x80;

template <class Number>
bool TakeNumber(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

void SkipSpaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The thread group, where the option record-tgid is on.
void SkipGroup(std::string_view& text) {
  if (!text.starts_with('(')) return;
  text.remove_prefix(std::min(text.find(')'), text.size() - 1) + 1);
  SkipSpaces(text);
}

uint8_t FlagsOf(std::string_view letters) {
  const auto at = [&](size_t i) { return i < letters.size() ? letters[i] : '.'; };
  uint8_t flags = 0;
  if (at(0) == 'd' || at(0) == 'D') flags |= kIrqsOff;
  if (at(0) == 'b' || at(0) == 'D') flags |= kBottomHalfOff;
  if (at(1) == 'N' || at(1) == 'n') flags |= kNeedResched;
  if (at(1) == 'N' || at(1) == 'p') flags |= kPreemptResched;
  if (at(2) == 'h' || at(2) == 'H' || at(2) == 'Z') flags |= kHardIrq;
  if (at(2) == 's' || at(2) == 'H') flags |= kSoftIrq;
  if (at(2) == 'z' || at(2) == 'Z') flags |= kNmi;
  return flags;
}

uint8_t DigitAt(std::string_view letters, size_t i) {
  uint8_t digit = 0;
  if (i < letters.size()) std::from_chars(&letters[i], &letters[i] + 1, digit, 16);
  return digit;
}

// "EVENT: ..."; "sys_read(fd: 0...", "sys_read -> 0x1" (kernel/trace/trace_syscalls.c).
bool TakeEvent(std::string_view rest, PipeLine& line) {
  constexpr std::string_view kCall = "sys_";
  const std::string_view name = rest.substr(0, rest.find_first_of(":( "));
  const std::string_view behind = rest.substr(name.size());
  line.text = rest;
  if (name.starts_with(kCall) && behind.starts_with('(')) {
    line.event = "sys_enter_" + std::string(name.substr(kCall.size()));
  } else if (name.starts_with(kCall) && behind.starts_with(" -> ")) {
    line.event = "sys_exit_" + std::string(name.substr(kCall.size()));
  } else {
    line.event = name;
    line.text = behind;
    return !name.empty() && behind.starts_with(':');
  }
  return true;
}

}  // namespace

std::optional<PipeLine> ParsePipeLine(std::string_view line) {
  PipeLine parsed;
  if (line.size() <= kCommBytes || line[kCommBytes] != '-') return std::nullopt;
  std::string_view rest = line.substr(kCommBytes + 1);
  uint32_t cpu = 0;
  if (!TakeNumber(rest, parsed.tid)) return std::nullopt;
  SkipSpaces(rest);
  SkipGroup(rest);
  if (!TakePrefix(rest, "[") || !TakeNumber(rest, cpu) || !TakePrefix(rest, "] "))
    return std::nullopt;
  const std::string_view letters = rest.substr(0, rest.find(' '));
  rest.remove_prefix(letters.size());
  SkipSpaces(rest);
  if (!TakeNumber(rest, parsed.time) || !TakePrefix(rest, ": ")) return std::nullopt;
  if (!TakeEvent(rest, parsed)) return std::nullopt;
  parsed.flags = FlagsOf(letters);
  parsed.preempt_count = static_cast<uint8_t>(DigitAt(letters, 3) | DigitAt(letters, 4) << 4);
  return parsed;
}

bool SaysLost(std::string_view line) {
  return line.starts_with("CPU:") && line.find(" [LOST ") != line.npos && line.ends_with("EVENTS]");
}

}  // namespace probed::kernel
