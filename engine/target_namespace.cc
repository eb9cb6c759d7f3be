#include "engine/target_namespace.h"

#include <fcntl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/file.h"
#include "base/plural.h"
#include "elf/go_functions.h"
#include "engine/probe/ifunc.h"
#include "engine/sys/proc.h"

namespace probed::engine {
namespace {

int ErrnoOf(const Error& error) {
  auto found = error.metadata.find("errno");
  int value = EINVAL;
  if (found != error.metadata.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  return value;
}

Error IfuncError(const std::string& path, const elf::File& file, const elf::Symbol& symbol) {
  std::string candidates;
  for (const auto& other : file.functions()) {
    bool implementation = other.name.find(symbol.name + "_") != std::string::npos && !other.ifunc;
    if (implementation) candidates += (candidates.empty() ? "" : ",") + other.name;
  }
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "SYMBOL_IS_IFUNC",
               .message = fmt::format("{} in {} is a resolver that picks an implementation when "
                                      "the program starts",
                                      symbol.name, path),
               .hint = "probe an implementation by its name or by its file offset",
               .metadata = {{"candidates", candidates}}};
}

}  // namespace

bool TargetNamespace::Gone() const {
  return !OpenFile(sys::ProcPath(pid_, "root"), O_PATH).ok();
}

// A bare name is that of a mapped file, or of one in the usual directories.
std::string TargetNamespace::HintFor(const std::string& path) const {
  if (path.starts_with('/')) return {};
  if (path.find('/') != std::string::npos)
    return "A relative path begins in a directory that the daemon does not know: write the whole "
           "path.";
  if (before_exec_)
    return fmt::format(
        "The program has not begun, and in the usual directories there is no file called {}: one "
        "that it loads later is named by its whole path.",
        path);
  std::string hint = fmt::format(
      "The process has no file called {} mapped, nor is there one in the usual directories", path);
  for (const auto& module : space_.map().modules()) {
    std::string base = module.path.substr(module.path.rfind('/') + 1);
    if (module.inode != 0 && base.find(path) != std::string::npos) {
      return fmt::format("{}; did you mean {}?", hint, base);
    }
  }
  return hint + "; 'probectl symbols --pid PID --modules' lists what is mapped.";
}

const Result<probe::FileReference>& TargetNamespace::Resolve(const std::string& path) {
  auto found = resolved_.find(path);
  if (found == resolved_.end()) found = resolved_.emplace(path, space_.Resolve(path)).first;
  return found->second;
}

lang::FileLookup TargetNamespace::Lookup(const std::string& path) {
  const auto& file = Resolve(path);
  if (!file.ok()) {
    bool found = file.error().reason == "NOT_A_REGULAR_FILE";
    return {.error_number = found ? 0 : ErrnoOf(file.error()), .hint = HintFor(path)};
  }
  return {.error_number = 0, .regular = true, .device = file->device, .inode = file->inode};
}

Result<std::shared_ptr<const elf::File>> TargetNamespace::Open(const std::string& path) {
  auto found = opened_.find(path);
  if (found != opened_.end()) return found->second;
  PROBED_TRY(auto file, Resolve(path));
  return opened_.emplace(path, files_.Open(file, sys::ProcPath(pid_, "root"))).first->second;
}

Result<void> TargetNamespace::LookupProcess(int pid) {
  if (std::find(family_.begin(), family_.end(), pid) != family_.end()) return {};
  return Error{
      .code = ErrorCode::kNotFound,
      .reason = "PROCESS_NOT_ATTACHED",
      .message = fmt::format("process {} is not attached, or not with process {}, in which "
                             "this is to be defined",
                             pid, pid_),
      .hint = fmt::format("probectl attach --pid {0}; then probectl define --pid {0}", pid),
      .metadata = {{"pid", std::to_string(pid)}}};
}

lang::CallingConvention TargetNamespace::ConventionAt(const std::string& path, uint64_t offset) {
  auto file = Open(path);
  auto address = file.ok() ? (*file)->ToLinkAddr(FileOffset{offset}) : std::nullopt;
  bool is_go = address && elf::PassesInGoRegisters(**file, *address);
  return is_go ? lang::CallingConvention::kGo : lang::CallingConvention::kSystemV;
}

std::string TargetNamespace::WhoDefines(const std::string& symbol, const std::string& except) {
  if (before_exec_) return "";
  for (const auto& module : space_.map().modules()) {
    if (module.inode == 0 || module.path == except) continue;
    auto file = files_.Open(space_.Refer(module), sys::ProcPath(pid_, "root"));
    if (!file.ok()) continue;
    const auto& functions = (*file)->functions();
    bool defines = std::any_of(functions.begin(), functions.end(),
                               [&](const auto& function) { return function.name == symbol; });
    if (defines) return module.path;
  }
  return "";
}

Result<elf::Symbol> TargetNamespace::FollowIfunc(const std::string& path, const elf::File& file,
                                                 elf::Symbol symbol) {
  PROBED_TRY(auto reference, Resolve(path));
  const elf::Module* module =
      reference.mapped ? space_.map().FindFile(reference.device, reference.inode) : nullptr;
  probe::IfuncResolver resolver(pid_, space_, files_);
  auto chosen = module != nullptr ? resolver.Chosen(*module, symbol) : std::nullopt;
  if (!chosen) return IfuncError(path, file, symbol);
  auto aliases = file.AliasesAt(*chosen);
  remark_ = fmt::format(
      "{} is an IFUNC, for which the process has chosen {}", symbol.name,
      aliases.empty() ? fmt::format("the code at {:#x}", chosen->value) : aliases.front().name);
  symbol.address = *chosen;
  symbol.ifunc = false;
  return symbol;
}

Result<elf::Symbol> TargetNamespace::FindFunction(const std::string& path,
                                                  const std::string& symbol) {
  PROBED_TRY(auto file, Open(path));
  auto found = file->FindFunction(symbol);
  if (found.ok()) {
    if (found->ifunc) return FollowIfunc(path, *file, std::move(*found));
    return found;
  }
  Error error = std::move(found).error();
  if (error.reason == "SYMBOL_AMBIGUOUS") return error;
  std::string definer = WhoDefines(symbol, file->name());
  if (!definer.empty()) {
    error.metadata["defined_in"] = definer;
    error.hint = fmt::format("{} is defined in {}", symbol, definer);
  }
  return error;
}

Result<uint64_t> TargetNamespace::ResolveSymbol(const std::string& path, const std::string& symbol,
                                                uint64_t addend) {
  auto resolve = [&]() -> Result<uint64_t> {
    PROBED_TRY(auto found, FindFunction(path, symbol));
    PROBED_TRY(auto file, Open(path));
    auto offset = file->ToOffset(found.address + addend);
    if (offset) return offset->value;
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "OFFSET_PAST_EOF",
                 .message = fmt::format("{}+{:#x} is not in {}", symbol, addend, path),
                 .hint = fmt::format("{} has {}", symbol, Plural(found.size, "byte")),
                 .metadata = {}};
  };
  auto result = resolve();
  if (!result.ok()) symbol_error_ = result.error();
  return result;
}

std::optional<Error> TargetNamespace::TakeSymbolError() {
  return std::exchange(symbol_error_, std::nullopt);
}

}  // namespace probed::engine
