#include "engine/kernel/refusal.h"

#include <cerrno>

#include <fmt/format.h>

#include "engine/kernel/error_log.h"
#include "engine/lang/judge.h"

namespace probed::kernel {
namespace {

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

}  // namespace

Refusal RefusedName(const lang::Refusal& refusal, const std::vector<std::string>& tokens) {
  Refusal refused;
  refused.verdict = lang::MakeVerdict(refusal, tokens);
  refused.error = Error{.code = ErrorCode::kInvalidArgument,
                        .reason = refused.verdict.code,
                        .message = refused.verdict.message.value_or(refused.verdict.explanation),
                        .hint = refused.verdict.explanation,
                        .metadata = {}};
  return refused;
}

Refusal RefusedDefinition(const Tracefs& tracefs, const DefinitionLine& line, const Owner& owner,
                          const Error& failed) {
  Refusal refusal;
  refusal.error = failed;
  if (!IsAboutTheLine(failed)) return refusal;
  const int error_number = ErrnoOf(failed);
  const std::string command = KernelLine(line, owner);
  const auto log = tracefs.Read("error_log");
  const auto logged = log.ok() ? FindError(*log, command) : std::nullopt;
  if (logged) {
    refusal = FromLog(*logged, error_number);
    refusal.verdict.caret = WrittenColumn(line, owner, logged->caret);
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
  return refusal;
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
  const auto log = tracefs.Read(directory + "/error_log");
  const auto logged = log.ok() ? FindError(*log, filter) : std::nullopt;
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

}  // namespace probed::kernel
