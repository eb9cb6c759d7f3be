#include "engine/lang/judge.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "engine/lang/compile.h"
#include "engine/lang/ctype.h"
#include "engine/lang/line.h"
#include "engine/lang/number.h"
#include "engine/lang/path_escape.h"
#include "engine/lang/place.h"

namespace probed::lang {
namespace {

constexpr size_t kMaxArguments = 128;
constexpr uint64_t kMaxMaxActive = 4096;  // as kprobes
constexpr std::string_view kDefaultGroup = "uprobes";

Refusal Refuse(RefusalCode code, size_t token, int column, int error_number = EINVAL) {
  return {code, error_number, token, column, {}, {}, {}};
}

// The kind token: `p`, `r`, each with `:NAME`; in the extended dialect `r<N>`.
struct Kind {
  ProbeKind kind = ProbeKind::kEntry;
  uint32_t max_active = 0;
  std::optional<std::string_view> name;
  int name_column = 0;
};

Judged<uint32_t> ParseMaxActive(std::string_view digits, ProbeKind kind) {
  if (kind == ProbeKind::kEntry) return Refuse(RefusalCode::kBadMaxactType, 0, 1);
  const auto number = ParseUnsigned(digits);
  if (number.error_number != 0 || number.value == 0) {
    return Refuse(RefusalCode::kBadMaxact, 0, 1);
  }
  if (number.value > kMaxMaxActive) return Refuse(RefusalCode::kMaxactTooBig, 0, 1);
  return static_cast<uint32_t>(number.value);
}

Judged<Kind> ParseKind(std::string_view token, Dialect dialect) {
  Kind kind;
  if (token[0] == 'r') kind.kind = ProbeKind::kReturn;
  const size_t colon = token.find(':');
  const std::string_view between =
      token.substr(1, colon == std::string_view::npos ? std::string_view::npos : colon - 1);
  const bool has_number = dialect == Dialect::kExtended && !between.empty() && IsDigit(between[0]);
  if (has_number) {
    PROBED_TRY(kind.max_active, ParseMaxActive(between, kind.kind));
  }
  // Any other text before the ':' makes the kernel forget the name (1.2).
  if (colon != std::string_view::npos && (has_number || between.empty())) {
    kind.name = token.substr(colon + 1);
    kind.name_column = static_cast<int>(colon) + 1;
  }
  return kind;
}

Judged<void> CheckShape(const std::vector<std::string>& tokens) {
  const char kind = tokens[0][0];
  if (kind != 'p' && kind != 'r') return Refuse(RefusalCode::kUnknownKind, 0, 0);
  if (tokens.size() < 2) return Refuse(RefusalCode::kMissingPlace, 0, 0);
  if (tokens.size() - 2 > kMaxArguments) return Refuse(RefusalCode::kTooManyArgs, 2, 0, E2BIG);
  return {};
}

Judged<void> SetName(const Kind& kind, Definition& definition) {
  EventName name;
  if (kind.name) {
    PROBED_TRY(name, ParseEventName(*kind.name, kind.name_column));
  }
  definition.group = name.group.empty() ? std::string(kDefaultGroup) : name.group;
  definition.event =
      name.event.empty() ? GenerateEventName(definition.path, definition.offset) : name.event;
  return {};
}

Judged<std::vector<Argument>> ParseArguments(const std::vector<std::string>& tokens,
                                             const ExpressionRules& rules) {
  std::vector<Argument> arguments;
  arguments.reserve(tokens.size() - 2);
  uint32_t kernel_size = 0;
  for (size_t i = 2; i < tokens.size(); ++i) {
    auto argument = ParseArgument(tokens[i], {rules, arguments, kernel_size});
    if (!argument.ok()) {
      argument.error().token = i;
      return argument.error();
    }
    kernel_size += KernelSize(argument->type);
    arguments.push_back(std::move(*argument));
  }
  return arguments;
}

bool Takes(const Argument& argument, SourceKind kind) {
  return argument.expression.source.kind == kind ||
         (argument.length && argument.length->expression.source.kind == kind);
}

bool TakesNumbered(const Argument& argument) {
  return Takes(argument, SourceKind::kArgument);
}

EventSchema MakeSchema(const Definition& definition, const std::vector<Argument>& arguments) {
  EventSchema schema{definition.kind, definition.group, definition.event, {}, 0};
  for (const Argument& argument : arguments) {
    const uint32_t size = ElementSize(argument.type.base) * argument.type.count;
    schema.fields.push_back({argument.name, argument.type, schema.fixed_size, size});
    schema.fixed_size += size;
  }
  return schema;
}

std::string MakeReadback(const Definition& definition, const std::vector<Argument>& arguments,
                         Dialect dialect) {
  std::string line = definition.kind == ProbeKind::kReturn ? "r" : "p";
  if (definition.max_active != 0) line += fmt::format("{}", definition.max_active);
  const bool extended = dialect == Dialect::kExtended;
  line += fmt::format(":{}/{} {}:{}", definition.group, definition.event,
                      extended ? EscapePath(definition.path) : definition.path,
                      FormatOffset(definition.offset, definition.ref_ctr_offset));
  for (const Argument& argument : arguments) {
    line += fmt::format(" {}={}", argument.name, argument.text);
  }
  return line;
}

void SetPlace(Place place, Definition& definition) {
  if (place.is_return) definition.kind = ProbeKind::kReturn;
  definition.path = std::move(place.path);
  definition.offset = place.offset;
  definition.symbol = std::move(place.symbol);
  definition.ref_ctr_offset = place.ref_ctr_offset;
  definition.process = place.process;
  definition.device = place.device;
  definition.inode = place.inode;
}

// Nothing says where functions of generated code begin, and runtimes that generate code look at
// return addresses themselves.
std::optional<Refusal> AgainstAddress(const Definition& definition,
                                      const std::vector<Argument>& arguments) {
  if (definition.process == 0) return std::nullopt;
  if (definition.kind == ProbeKind::kReturn) {
    return Refusal{RefusalCode::kOwnWords,
                   EINVAL,
                   1,
                   0,
                   "BAD_RETPROBE",
                   "Retprobe address must be an function entry",
                   "An address does not say that a function begins there. Put p on a ret "
                   "instruction instead: the value is in %ax."};
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!Takes(arguments[i], SourceKind::kFileOffset)) continue;
    Refusal refusal = Refuse(RefusalCode::kBadFileOffs, i + 2, 0);
    refusal.hint = "There is no file at this place; use @ADDRESS.";
    return refusal;
  }
  return std::nullopt;
}

// 0-based column in the command; a token that is not there lies one past the end (kernel, 2.3).
int CaretOf(const Refusal& refusal, const std::vector<std::string>& tokens) {
  int position = 0;
  for (size_t i = 0; i < tokens.size() && i < refusal.token; ++i) {
    position += static_cast<int>(tokens[i].size()) + 1;
  }
  return refusal.token < tokens.size() ? position + refusal.column : position;
}

}  // namespace

Judged<JudgedLine> JudgeDefinition(const std::vector<std::string>& tokens, Dialect dialect,
                                   FileNamespace& files) {
  if (auto shape = CheckShape(tokens); !shape.ok()) return shape.error();
  PROBED_TRY(const Kind kind, ParseKind(tokens[0], dialect));
  PROBED_TRY(Place place, ParsePlace(tokens[1], dialect, files));

  JudgedLine line;
  Definition& definition = line.definition;
  definition.kind = kind.kind;
  definition.max_active = kind.max_active;
  SetPlace(std::move(place), definition);
  if (auto named = SetName(kind, definition); !named.ok()) return named.error();
  PROBED_TRY(const std::vector<Argument> arguments,
             ParseArguments(tokens, {definition.kind, dialect}));
  if (auto refusal = AgainstAddress(definition, arguments)) return *std::move(refusal);

  definition.schema = MakeSchema(definition, arguments);
  definition.readback = MakeReadback(definition, arguments, dialect);
  if (definition.process == 0 && std::ranges::any_of(arguments, TakesNumbered)) {
    definition.convention = files.ConventionAt(definition.path, definition.offset);
  }
  definition.program = std::make_shared<const FetchProgram>(Compile(arguments, definition));
  definition.entry_arguments = HighestEntryArgument(arguments, definition.kind);
  for (const Argument& argument : arguments)
    line.argument_texts.push_back(argument.text);
  return line;
}

Verdict MakeVerdict(const Refusal& refusal, const std::vector<std::string>& tokens) {
  Verdict verdict;
  verdict.error_number = refusal.error_number;
  verdict.command = JoinTokens(tokens);
  if (refusal.code == RefusalCode::kOwnWords) {
    verdict.code = refusal.reason;
    verdict.message = refusal.message;
    verdict.explanation = refusal.hint.empty() ? refusal.message : refusal.hint;
  } else {
    const RefusalText& text = TextOf(refusal.code);
    verdict.code = text.name;
    verdict.explanation = refusal.hint.empty() ? text.explanation : refusal.hint;
    if (!text.message.empty()) verdict.message = text.message;
  }
  if (verdict.message) verdict.caret = CaretOf(refusal, tokens);
  return verdict;
}

}  // namespace probed::lang
