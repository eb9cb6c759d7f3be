#include "engine/kernel_lines.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/lang/ctype.h"
#include "engine/lang/line.h"
#include "engine/lang/path_escape.h"
#include "engine/lang/place.h"
#include "engine/probe_request.h"

namespace probed::engine {
namespace {

// Without a process there are no modules of a file to be meant by MODULE:SYMBOL.
lang::LineDestination DestinationOf(TargetId target, const std::string& line,
                                    const CreateOptions& options) {
  const bool modules = target == kKernelTarget && !options.in_kernel;
  return lang::Classify(line, modules ? lang::Dialect::kKernel : options.dialect);
}

LineError Refuse(size_t line, Error error) {
  return {.line = line, .error = std::move(error), .verdict = {}};
}

Error NeedsAProcess() {
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .reason = "NO_TARGET",
      .message =
          "this names nothing of the kernel's, and no process was named in which it could be",
      .hint =
          "--pid PID with 'attach', or --mechanism kernel for a kernel uprobe in every "
          "process",
      .metadata = {}};
}

Error NeedsAFile() {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = "NO_FILE",
               .message = "kernel uprobes belong to files, and this place is in no file",
               .hint = "leave --mechanism kernel out",
               .metadata = {}};
}

Error NoFormForBlanks(const std::string& path) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = "PATH_HAS_BLANKS",
               .message = path + " has white space or a '#', for which the kernel has no form",
               .hint = "leave --mechanism kernel out, or make a link of another name",
               .metadata = {}};
}

// User-side lines as the kernel takes them.
class UprobeWriter {
 public:
  UprobeWriter(pid_t pid, const probe::AddressSpace& space, probe::FileCache& files,
               const CreateOptions& options, const std::vector<ChangedCode>& ours)
      : space_(space),
        names_(pid, space, files),
        dialect_(options.dialect),
        set_(dialect_),
        ours_(ours) {}

  tl::expected<std::string, LineError> Write(size_t number, const std::string& line) {
    if (NamesProcess(line)) return tl::unexpected(Refuse(number, NeedsAFile()));
    auto applied = set_.Apply(line, names_);
    auto symbol_error = names_.TakeSymbolError();
    if (!applied.verdict.ok || !applied.added) {
      Error error = symbol_error ? std::move(*symbol_error) : ErrorOf(applied.verdict);
      return tl::unexpected(LineError{
          .line = number, .error = std::move(error), .verdict = std::move(applied.verdict)});
    }
    const auto definition = set_.Find(*applied.added);
    auto file = space_.Resolve(definition->path);
    if (!file.ok()) return tl::unexpected(Refuse(number, std::move(file).error()));
    Status free = CheckUprobePlace(ours_, file->open_path, definition->offset);
    if (!free.ok()) return tl::unexpected(Refuse(number, std::move(free).error()));
    const bool is_ours = IsSameFile(file->path, file->open_path);
    const std::string& path = is_ours ? file->path : file->open_path;
    if (lang::NeedsEscape(path)) return tl::unexpected(Refuse(number, NoFormForBlanks(path)));
    return Rewrite(*definition, path);
  }

 private:
  bool NamesProcess(const std::string& line) const {
    const auto tokens = lang::Tokenize(line);
    return dialect_ == lang::Dialect::kExtended && tokens.size() > 1 &&
           lang::ProcessOf(tokens[1]) != 0;
  }
  // The name that was generated for a file need not be one that the kernel takes when it is given.
  static std::string Rewrite(const lang::Definition& definition, const std::string& path) {
    std::string event = definition.event;
    std::replace_if(
        event.begin(), event.end(), [](char c) { return !lang::IsAlpha(c) && !lang::IsDigit(c); },
        '_');
    const std::string& read = definition.readback;
    const std::string rest = read.substr(read.rfind(':', read.find(' ', read.find(' ') + 1)));
    return fmt::format("{}:{}/{} {}{}", definition.kind == lang::ProbeKind::kReturn ? 'r' : 'p',
                       definition.group, event, path, rest);
  }

  const probe::AddressSpace& space_;
  TargetNamespace names_;
  const lang::Dialect dialect_;
  lang::DefinitionSet set_;
  const std::vector<ChangedCode>& ours_;
};

void WriteUprobes(TargetId target, const std::vector<std::string>& lines,
                  const CreateOptions& options, probe::FileCache& files,
                  const std::vector<ChangedCode>& ours, PartedLines& parted) {
  const pid_t pid = target == kKernelTarget ? getpid() : target.pid;
  auto space = probe::AddressSpace::Read(pid);
  std::optional<UprobeWriter> writer;
  if (space.ok()) writer.emplace(pid, *space, files, options, ours);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (parted.user[i].empty()) continue;
    parted.user[i].clear();
    if (!writer) {
      parted.errors.push_back(Refuse(i, space.error()));
      continue;
    }
    auto written = writer->Write(i, lines[i]);
    if (written) {
      parted.kernel.push_back({.line = i, .text = *std::move(written)});
    } else {
      parted.errors.push_back(std::move(written).error());
    }
  }
}

}  // namespace

bool NamesKernel(TargetId target, const std::vector<std::string>& lines,
                 const CreateOptions& options) {
  if (target == kKernelTarget || options.in_kernel) return true;
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return DestinationOf(target, line, options) == lang::LineDestination::kKernel;
  });
}

PartedLines PartLines(TargetId target, const std::vector<std::string>& lines,
                      const CreateOptions& options, probe::FileCache& files,
                      const std::vector<ChangedCode>& ours) {
  PartedLines parted;
  parted.user = lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto destination = DestinationOf(target, lines[i], options);
    if (destination == lang::LineDestination::kEmpty) parted.user[i].clear();
    if (destination != lang::LineDestination::kKernel) continue;
    parted.kernel.push_back({.line = i, .text = lines[i]});
    parted.user[i].clear();
  }
  if (options.in_kernel) WriteUprobes(target, lines, options, files, ours, parted);
  for (size_t i = 0; i < lines.size() && target == kKernelTarget; ++i)
    if (!parted.user[i].empty()) parted.errors.push_back(Refuse(i, NeedsAProcess()));
  std::sort(parted.kernel.begin(), parted.kernel.end(),
            [](const auto& a, const auto& b) { return a.line < b.line; });
  return parted;
}

LineError ToLineError(kernel::Refusal refusal) {
  return {.line = refusal.line,
          .error = std::move(refusal.error),
          .verdict = std::move(refusal.verdict),
          .in_filter = refusal.in_filter};
}

}  // namespace probed::engine
