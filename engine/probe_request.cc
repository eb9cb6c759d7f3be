#include "engine/probe_request.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/probe/judge.h"
#include "engine/probe/return_instructions.h"

namespace probed::engine {
namespace {

Error Refusal(ErrorCode code, std::string reason, std::string message, std::string hint) {
  return Error{.code = code,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = std::move(hint),
               .metadata = {}};
}

// A definition that is well written may still name what is not there, or is there already.
ErrorCode CodeOf(const lang::Verdict& verdict) {
  switch (verdict.error_number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorCode::kPermissionDenied;
    case EEXIST:
      return ErrorCode::kAlreadyExists;
    default:
      return ErrorCode::kInvalidArgument;
  }
}

uint32_t MaxActive(const lang::Definition& definition, const CreateOptions& options) {
  if (definition.max_active != 0) return definition.max_active;
  return options.max_active != 0 ? options.max_active : kDefaultMaxActive;
}

uint32_t PossibleCpus() {
  return static_cast<uint32_t>(std::max(sysconf(_SC_NPROCESSORS_CONF), 1L));
}

}  // namespace

Error ErrorOf(const lang::Verdict& verdict) {
  std::string message = verdict.message.value_or(verdict.explanation);
  if (message.empty()) message = "the line is not a definition";
  return Refusal(CodeOf(verdict), verdict.code.empty() ? "BAD_DEFINITION" : verdict.code,
                 std::move(message), verdict.message ? verdict.explanation : "");
}

tl::expected<std::shared_ptr<const lang::Filter>, LineError> MakeFilter(const probe::Probe& probe,
                                                                        const std::string& text) {
  if (text.empty()) return nullptr;
  auto filter = lang::CompileFilter(text, *probe.schema, {probe.dialect, PossibleCpus()});
  if (filter && filter->text.empty()) return nullptr;
  if (filter) return std::make_shared<const lang::Filter>(*std::move(filter));
  LineError refused;
  refused.verdict = lang::MakeVerdict(filter.error(), *probe.schema);
  refused.error = ErrorOf(refused.verdict);
  refused.error.message = "filter: " + refused.error.message;
  refused.in_filter = true;
  return tl::unexpected(std::move(refused));
}

void ProbeRequest::Refuse(size_t number, Error error, lang::Verdict verdict) {
  errors_.push_back({.line = number, .error = std::move(error), .verdict = std::move(verdict)});
}

void ProbeRequest::Refuse(std::vector<probe::ProbeError> failures) {
  for (auto& failure : failures)
    Refuse(LineOf(*failure.probe), std::move(failure.error));
}

void ProbeRequest::Apply(size_t number, const std::string& line) {
  auto applied = set_.Apply(line, names_, options_.dialect);
  auto symbol_error = names_.TakeSymbolError();
  std::string remark = names_.TakeRemark();
  if (!applied.verdict.ok) {
    Error error = symbol_error ? std::move(*symbol_error) : ErrorOf(applied.verdict);
    return Refuse(number, std::move(error), std::move(applied.verdict));
  }
  if (!applied.added) return;
  auto probe = std::make_shared<probe::Probe>();
  probe->dialect = options_.dialect;
  probe->definition_id = *applied.added;
  probe->definition = set_.Find(*applied.added);
  probe->schema = {probe->definition, &probe->definition->schema};
  probe->enabled = options_.enable;
  probe->selection.sampling = options_.sampling;
  probe->remark = std::move(remark);
  probe->options = {.limits = {.max_string = options_.string_limit,
                               .kernel_string_rules = options_.dialect == lang::Dialect::kKernel},
                    .max_active = MaxActive(*probe->definition, options_),
                    .force = options_.force,
                    .optimize = options_.optimize,
                    .at_ret = options_.at_ret};
  probes_.push_back(std::move(probe));
  lines_.push_back(number);
  JudgeFilter(number, *probes_.back());
}

void ProbeRequest::JudgeFilter(size_t number, probe::Probe& probe) {
  auto filter = MakeFilter(probe, options_.filter);
  if (filter) {
    probe.selection.filter = *std::move(filter);
    return;
  }
  filter.error().line = number;
  errors_.push_back(std::move(filter).error());
}

void ProbeRequest::JudgeLine(size_t number, const std::string& line) {
  switch (lang::Classify(line, options_.dialect)) {
    case lang::LineDestination::kEmpty:
    case lang::LineDestination::kKernel:  // somebody else's
      return;
    case lang::LineDestination::kDeletion:
      return Refuse(number, Refusal(ErrorCode::kInvalidArgument, "DELETION_LINE",
                                    "this line deletes probes, which is no definition",
                                    "'probectl delete' takes it (DeleteProbes in the API)"));
    case lang::LineDestination::kUser:
    case lang::LineDestination::kMalformed:
      return Apply(number, line);
  }
}

Status ProbeRequest::JudgeFile(probe::Probe& probe) {
  const lang::Definition& definition = *probe.definition;
  if (definition.process != 0) return {};  // in its memory, where the planner looks
  bool mapped = space_.Find(definition) != nullptr;
  if (!mapped && options_.require_armed) {
    return Refusal(ErrorCode::kFailedPrecondition, "FILE_NOT_MAPPED",
                   definition.path + " is not mapped in the process",
                   "leave the definition pending, it is armed when the file appears");
  }
  PROBED_TRY(auto file, names_.Open(definition.path));
  PROBED_RETURN_IF_ERROR(probe::JudgePlace(*file, definition, probe.options, boundaries_));
  probe.file = file;
  probe.code = probe::CodeAt(*file, FileOffset{definition.offset});
  if (!probe::StandsAtRet(*file, definition, probe.options)) return {};
  if (probe.options.at_ret && (definition.max_active != 0 || options_.max_active != 0)) {
    return Refusal(
        ErrorCode::kInvalidArgument, "NO_MAX_ACTIVE_AT_RET",
        "a return probe on ret instructions counts no calls, which max-active would limit",
        "leave out --max-active (or the number behind r), or --at-ret");
  }
  PROBED_TRY(auto returns, probe::FindReturnInstructions(*file, definition));
  probe.return_instructions = std::move(returns.offsets);
  probe.unseen_returns = std::move(returns.unseen);
  return {};
}

// Files are looked at only when every line is in order: a long request with a bad line ends early.
bool ProbeRequest::Judge(const std::vector<std::string>& lines) {
  for (size_t i = 0; i < lines.size(); ++i)
    JudgeLine(i, lines[i]);
  if (!errors_.empty()) return false;
  for (size_t i = 0; i < probes_.size(); ++i) {
    Status judged = JudgeFile(*probes_[i]);
    if (!judged.ok()) Refuse(lines_[i], std::move(judged).error());
  }
  return errors_.empty();
}

void ProbeRequest::Undo() {
  for (auto probe = probes_.rbegin(); probe != probes_.rend(); ++probe) {
    set_.Remove((*probe)->definition_id);
  }
}

size_t ProbeRequest::LineOf(const probe::Probe& probe) const {
  auto found = std::find_if(probes_.begin(), probes_.end(),
                            [&](const auto& entry) { return entry.get() == &probe; });
  return found == probes_.end() ? 0 : lines_[static_cast<size_t>(found - probes_.begin())];
}

}  // namespace probed::engine
