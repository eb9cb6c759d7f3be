#include "engine/kernel/refusal.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "engine/kernel/error_log.h"
#include "engine/lang/ctype.h"
#include "engine/lang/judge.h"

namespace probed::kernel {
namespace {

// What it is likely to be (trace_events_trigger.c and trace_events_hist.c log little).
std::string ExplainTrigger(const std::string& trigger, int error_number) {
  if (error_number == EEXIST)
    return "There is such a trigger already; traceon and traceoff are the same sort.";
  if (trigger.starts_with('!'))
    return "There is no such trigger, or something refers to it: a histogram's variables are "
           "taken away after what uses them.";
  if (error_number == EBUSY) return "Something refers to it.";
  return "The kernel refused the trigger without a word: COMMAND[:COUNT] [if FILTER], where the "
         "event's trigger file lists the commands that it has, and FILTER is as with 'filter'.";
}

constexpr size_t kMostNameBytes = 63;  // MAX_EVENT_NAME_LEN with its NUL

ErrorCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENODEV:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kAlreadyExists;
    case EBUSY:
      return ErrorCode::kFailedPrecondition;
    case ENOMEM:
    case ENOSPC:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kInvalidArgument;
  }
}

// What it is likely to be when the kernel returns a number and logs nothing.
std::string ExplainSilence(const DefinitionLine& line, int error_number) {
  if (line.body.empty()) return "The line ends after the name; write what to probe behind it.";
  switch (error_number) {
    case EEXIST:
      return "Another event has this name already; choose another one.";
    case ENOENT:
      return "Something that the line names does not exist: look for the symbol in "
             "/proc/kallsyms, for the event in available_events.";
    case E2BIG:
      return "There are too many arguments, or they are too long.";
    case EOPNOTSUPP:
      return "This kernel is built without what the line asks for.";
    default:
      break;
  }
  switch (line.kind) {
    case LineKind::kEprobe:
      return "An event probe is e:GROUP/EVENT SYSTEM.EVENT [NAME=$FIELD[:TYPE]...] [if FILTER].";
    case LineKind::kSynthetic:
      return "A synthetic event is s:EVENT TYPE FIELD[; TYPE FIELD...]; its group is always "
             "synthetic.";
    case LineKind::kTracepoint:
      return "A tracepoint probe is t:GROUP/EVENT TRACEPOINT [ARG...].";
    case LineKind::kFprobe:
      return "A function probe is f:GROUP/EVENT FUNCTION[%return] [ARG...].";
    case LineKind::kUprobe:
      return "A kernel uprobe is p:GROUP/EVENT /PATH:0xOFFSET [ARG...]: the offset must be a "
             "number, within the file, and free of another reference counter.";
    case LineKind::kKprobe:
      return "A kprobe is p:GROUP/EVENT [MODULE:]SYMBOL[+OFFSET] [ARG...].";
  }
  return "";
}

Refusal FromLog(const LoggedError& logged, int error_number) {
  Refusal refusal;
  refusal.verdict.error_number = error_number;
  refusal.verdict.code = CodeOfMessage(logged.message);
  refusal.verdict.message = logged.message;
  refusal.verdict.caret = logged.caret;
  refusal.verdict.command = logged.command;
  refusal.error = Error{.code = CodeOf(error_number),
                        .reason = refusal.verdict.code,
                        .message = logged.message,
                        .hint = "",
                        .metadata = {{"errno", std::to_string(error_number)}}};
  return refusal;
}

// The errors that Tracefs names are not about the line.
bool IsAboutTheLine(const Error& failed) {
  return ErrnoOf(failed) != 0 && failed.reason != "TRACEFS_READ_ONLY" &&
         failed.reason != "TRACEFS_PERMISSION" && failed.reason != "KERNEL_LOCKDOWN";
}

// A name that the kernel would take from anybody else.
void ExplainPrefix(const DefinitionLine& line, const Owner& owner, Refusal& refusal) {
  const bool is_group = refusal.verdict.code == "GROUP_TOO_LONG";
  const size_t length = is_group ? line.group.size() : line.event.size();
  if ((!is_group && refusal.verdict.code != "EVENT_TOO_LONG") || length > kMostNameBytes) return;
  const size_t prefix = GroupPrefix(owner).size();
  refusal.verdict.explanation =
      fmt::format("In the kernel {} stands in front of it, which leaves {} characters.",
                  GroupPrefix(owner), kMostNameBytes - prefix);
  refusal.error.hint = refusal.verdict.explanation;
}

// What a breakpoint of our own could have had in the same place.
void ExplainOwnForms(Refusal& refusal) {
  lang::Verdict& verdict = refusal.verdict;
  const auto caret = static_cast<size_t>(std::max(verdict.caret.value_or(0), 0));
  const size_t column = std::min(caret, verdict.command.size());
  const std::string_view blamed = std::string_view(verdict.command).substr(column);
  const auto begins = [&](std::string_view form) { return blamed.starts_with(form); };
  if (verdict.code == "NOFENTRY_ARGS") {
    verdict.explanation =
        "Kernel uprobes have no $argN: write %di %si %dx %cx %r8 %r9, or leave --mechanism kernel "
        "out.";
  } else if (begins("%xmm") || begins("f32") || begins("f64") || begins("bytes(")) {
    verdict.explanation =
        "Kernel uprobes have no %xmmN, f32, f64 and bytes(LENGTH); leave --mechanism kernel out.";
  }
  refusal.error.hint = verdict.explanation;
}

std::optional<LoggedError> ReadLogged(const Tracefs& tracefs, const std::string& file,
                                      const std::string& command) {
  const auto log = tracefs.Read(file);
  if (!log.ok()) return std::nullopt;
  auto logged = FindError(*log, command);
  return logged ? logged : FindFilterError(*log, command);
}

// What the kernel writes out before it judges the rest (trace_probe.c, traceprobe_expand_*).
bool IsExpanded(const DefinitionLine& line) {
  return line.body.find(":%p") != std::string::npos || line.body.find("$arg") != std::string::npos;
}

// As the line has become; so have columns in it.
std::optional<LoggedError> ReadExpanded(const Tracefs& tracefs, const Owner& owner,
                                        DefinitionLine& line) {
  const auto log = tracefs.Read("error_log");
  if (!log.ok() || !IsExpanded(line)) return std::nullopt;
  const std::string head = KernelHead(line, owner);
  const std::string place = line.body.substr(0, line.body.find(' '));
  auto logged = FindErrorOf(*log, head + " " + place);
  if (logged) line.body = line.kernel_body = logged->command.substr(head.size() + 1);
  return logged;
}

}  // namespace

Refusal RefusedName(const lang::Refusal& refusal, const std::vector<std::string>& tokens) {
  Refusal refused;
  refused.verdict = lang::MakeVerdict(refusal, tokens);
  // Names of synthetic events are judged in words of their own (trace_events_synth.c).
  if (tokens[0].starts_with('s') && refused.verdict.code == "BAD_EVENT_NAME") {
    refused.verdict.code = "BAD_NAME";
    refused.verdict.message = "Illegal name";
  }
  refused.error = Error{.code = ErrorCode::kInvalidArgument,
                        .reason = refused.verdict.code,
                        .message = refused.verdict.message.value_or(refused.verdict.explanation),
                        .hint = refused.verdict.explanation,
                        .metadata = {}};
  return refused;
}

Refusal RefusedDefinition(const Tracefs& tracefs, DefinitionLine line, const Owner& owner,
                          const Error& failed) {
  Refusal refusal;
  refusal.error = failed;
  if (!IsAboutTheLine(failed)) return refusal;
  const int error_number = ErrnoOf(failed);
  auto logged = ReadLogged(tracefs, "error_log", KernelLine(line, owner));
  if (!logged) logged = ReadExpanded(tracefs, owner, line);
  if (logged) {
    refusal = FromLog(*logged, error_number);
    refusal.verdict.caret = WrittenColumn(line, owner, logged->caret);
    ExplainPrefix(line, owner, refusal);
  } else {
    refusal.verdict.error_number = error_number;
    refusal.verdict.code = "KERNEL_REFUSED";
    refusal.verdict.explanation = ExplainSilence(line, error_number);
    refusal.error = Error{.code = CodeOf(error_number),
                          .reason = "KERNEL_REFUSED",
                          .message = fmt::format("the kernel refused the line without a word ({})",
                                                 strerrorname_np(error_number)),
                          .hint = refusal.verdict.explanation,
                          .metadata = {{"errno", std::to_string(error_number)}}};
  }
  refusal.verdict.command = line.command();
  if (line.kind == LineKind::kUprobe && logged) ExplainOwnForms(refusal);
  return refusal;
}

void ExplainWithoutBtf(Refusal& refusal) {
  lang::Verdict& verdict = refusal.verdict;
  if (verdict.code != "BAD_VAR" && verdict.code != "BAD_FETCH_ARG") return;
  if (!verdict.caret || *verdict.caret < 0) return;
  const auto column = std::min(static_cast<size_t>(*verdict.caret), verdict.command.size());
  const std::string_view blamed = std::string_view(verdict.command).substr(column);
  if (blamed.empty() || (!lang::IsAlpha(blamed[0]) && !blamed.starts_with("$arg*"))) return;
  verdict.explanation =
      "This kernel does not know functions' arguments by name (BTF): that takes "
      "CONFIG_PROBE_EVENTS_BTF_ARGS, Linux 6.4. $arg1, $arg2... or registers do without.";
  refusal.error.hint = verdict.explanation;
}

// Known from the kernel's code for what is logged nowhere (kernel/events/uprobes.c, 524 being
// ENOTSUPP, which was never meant for user space).
Error RefusedEnable(const std::string& definition, const Error& failed) {
  constexpr int kNotSupported = 524;
  if (!IsAboutTheLine(failed)) return failed;
  const int error_number = ErrnoOf(failed);
  std::string hint = "see dmesg; 'probectl explain' tells what stands at a place";
  if (error_number == kNotSupported)
    hint = "no kernel uprobe can stand on this instruction; without --mechanism kernel one may";
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "KERNEL_ENABLE_REFUSED",
               .message = fmt::format("the kernel does not switch {} on (error {})", definition,
                                      error_number),
               .hint = std::move(hint),
               .metadata = failed.metadata};
}

Refusal RefusedFilter(const Tracefs& tracefs, const std::string& directory,
                      const std::string& filter, const Error& failed) {
  Refusal refusal;
  refusal.error = failed;
  refusal.in_filter = true;
  if (!IsAboutTheLine(failed)) return refusal;
  const auto logged = ReadLogged(tracefs, directory + "/error_log", filter);
  if (logged) {
    refusal = FromLog(*logged, ErrnoOf(failed));
    refusal.in_filter = true;
    refusal.error.message = "filter: " + refusal.error.message;
    return refusal;
  }
  refusal.verdict.error_number = ErrnoOf(failed);
  refusal.verdict.code = "KERNEL_REFUSED";
  refusal.verdict.command = filter;
  refusal.verdict.explanation = "The kernel refused the filter without a word.";
  return refusal;
}

Refusal RefusedTrigger(const Tracefs& tracefs, const std::string& directory,
                       const std::string& trigger, const Error& failed) {
  Refusal refusal = RefusedFilter(tracefs, directory, trigger, failed);
  if (refusal.verdict.code == "KERNEL_REFUSED" && !refusal.verdict.message)
    refusal.verdict.explanation = ExplainTrigger(trigger, ErrnoOf(failed));
  return refusal;
}

}  // namespace probed::kernel
