#include "engine/kernel/error_log.h"

#include <algorithm>
#include <array>
#include <functional>
#include <sstream>

#include "engine/lang/filter.h"
#include "engine/lang/refusal.h"

namespace probed::kernel {
namespace {

constexpr std::string_view kCommand = "  Command: ";
constexpr std::string_view kError = ": error: ";
constexpr std::string_view kIf = " if ";
constexpr std::string_view kFilterParser = "event filter parse error";

struct KernelMessage {
  std::string_view name, text;
};
// What no uprobe line of ours can come to (kernel/trace/trace_probe.h, ERRORS); the others are in
// lang/refusal.cc.
constexpr std::array kMessages = {
    KernelMessage{"BAD_PROBE_ADDR", "Invalid probed address or symbol"},
    KernelMessage{"NON_UNIQ_SYMBOL", "The symbol is not unique"},
    KernelMessage{"BAD_RETPROBE", "Retprobe address must be an function entry"},
    KernelMessage{"NO_TRACEPOINT", "Tracepoint is not found"},
    KernelMessage{"BAD_TP_NAME", "Invalid character in tracepoint name"},
    KernelMessage{"NO_RETVAL", "This function returns 'void' type"},
    KernelMessage{"BAD_STACK_NUM", "Invalid stack number"},
    KernelMessage{"BAD_VAR", "Invalid $-valiable specified"},
    KernelMessage{"BAD_MAXACT_TYPE", "Maxactive is not for kprobe"},
    KernelMessage{"FILE_ON_KPROBE", "File offset is not available with kprobe"},
    KernelMessage{"BAD_SYMSTRING", "Symbol String doesn't accept data/userdata"},
    KernelMessage{"BAD_INSN_BNDRY", "Probe point is not an instruction boundary"},
    KernelMessage{"FAIL_REG_PROBE", "Failed to register probe event"},
    KernelMessage{"NO_EVENT_INFO", "This requires both group and event name to attach"},
    KernelMessage{"BAD_ATTACH_EVENT", "Attached event does not exist"},
    KernelMessage{"BAD_ATTACH_ARG", "Attached event does not have this field"},
    KernelMessage{"NO_EP_FILTER", "No filter rule after 'if'"},
    KernelMessage{"NO_BTFARG", "This variable is not found at this probe point"},
    KernelMessage{"NO_BTF_ENTRY", "No BTF entry for this probe point"},
    KernelMessage{"BAD_VAR_ARGS", "$arg* must be an independent parameter without name etc."},
    KernelMessage{"DOUBLE_ARGS", "$arg* can be used only once in the parameters"},
    KernelMessage{"ARGS_2LONG", "$arg* failed because the argument list is too long"},
    KernelMessage{"ARGIDX_2BIG", "$argN index is too big"},
    KernelMessage{"NO_PTR_STRCT", "This is not a pointer to union/structure."},
    KernelMessage{"NOSUP_DAT_ARG", "Non pointer structure/union argument is not supported."},
    KernelMessage{"BAD_HYPHEN", "Failed to parse single hyphen. Forgot '>'?"},
    KernelMessage{"NO_BTF_FIELD", "This field is not found."},
    KernelMessage{"BAD_BTF_TID", "Failed to get BTF type info."},
    KernelMessage{"BAD_TYPE4STR", "This type does not fit for string."},
    KernelMessage{"TOO_MANY_EARGS", "Too many entry arguments specified"},
    KernelMessage{"TYPECAST_NOT_EVENT", "Typecasts are only for eprobe fields"},
    // Of synthetic events (kernel/trace/trace_events_synth.c).
    KernelMessage{"BAD_NAME", "Illegal name"},
    KernelMessage{"INVALID_CMD", "Command must be of the form: <name> field[;field] ..."},
    KernelMessage{"INVALID_DYN_CMD",
                  "Command must be of the form: s or -:[synthetic/]<name> field[;field] ..."},
    KernelMessage{"EVENT_EXIST", "Event already exists"},
    KernelMessage{"TOO_MANY_FIELDS", "Too many fields"},
    KernelMessage{"INCOMPLETE_TYPE", "Incomplete type"},
    KernelMessage{"INVALID_TYPE", "Invalid type"},
    KernelMessage{"INVALID_FIELD", "Invalid field"},
    KernelMessage{"INVALID_ARRAY_SPEC", "Invalid array specification"},
};

// Takes the next line off `text`.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::optional<LoggedError> FindNewest(std::string_view text,
                                      const std::function<bool(const LoggedError&)>& is_it) {
  const auto entries = ParseErrorLog(text);
  const auto found = std::find_if(entries.rbegin(), entries.rend(), is_it);
  if (found == entries.rend()) return std::nullopt;
  return *found;
}

}  // namespace

// "[  531.023616] trace_kprobe: error: MESSAGE", the command, and the caret below it.
std::vector<LoggedError> ParseErrorLog(std::string_view text) {
  std::vector<LoggedError> entries;
  while (!text.empty()) {
    const std::string_view head = TakeLine(text);
    const size_t stamp = head.find("] ");
    const size_t error = head.find(kError);
    if (!head.starts_with('[') || stamp == head.npos || error == head.npos || error < stamp)
      continue;
    if (!text.starts_with(kCommand)) continue;
    LoggedError entry{.subsystem = std::string(head.substr(stamp + 2, error - stamp - 2)),
                      .message = std::string(head.substr(error + kError.size())),
                      .command = std::string(TakeLine(text).substr(kCommand.size()))};
    const size_t caret = text.substr(0, text.find('\n')).find('^');
    if (caret != text.npos && caret >= kCommand.size()) {
      entry.caret = static_cast<int>(caret - kCommand.size());
      TakeLine(text);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::optional<LoggedError> FindError(std::string_view text, std::string_view command) {
  return FindNewest(text, [&](const LoggedError& entry) { return entry.command == command; });
}

std::optional<LoggedError> FindErrorOf(std::string_view text, std::string_view words) {
  const std::string begin = std::string(words) + " ";
  return FindNewest(text,
                    [&](const LoggedError& entry) { return entry.command.starts_with(begin); });
}

std::optional<LoggedError> FindFilterError(std::string_view text, std::string_view command) {
  const size_t at = command.find(kIf);
  if (at == command.npos) return std::nullopt;
  const size_t begin = at + kIf.size();
  auto found = FindError(text, command.substr(begin));
  if (!found || found->subsystem != kFilterParser) return std::nullopt;
  found->command = command;
  found->caret += static_cast<int>(begin);
  return found;
}

std::string CodeOfMessage(std::string_view message) {
  for (const KernelMessage& known : kMessages)
    if (known.text == message) return std::string(known.name);
  for (int code = 0; code < static_cast<int>(lang::RefusalCode::kBadLine); ++code) {
    const auto& text = lang::TextOf(static_cast<lang::RefusalCode>(code));
    if (text.message == message) return std::string(text.name);
  }
  for (int error = 0; error <= static_cast<int>(lang::FilterError::kTooLong); ++error) {
    const auto filter = static_cast<lang::FilterError>(error);
    if (lang::MessageOf(filter) == message) return std::string(lang::NameOf(filter));
  }
  return "KERNEL_REFUSED";
}

}  // namespace probed::kernel
