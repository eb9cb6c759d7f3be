// probectl symbols: functions that can be probed, and modules of a target.

#include <fmt/format.h>

#include <memory>

#include "client/json_writer.h"
#include "client/lines.h"
#include "client/typed_places.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct SymbolOptions {
  TargetOption target;
  std::string path;
  std::string pattern;
  uint64_t limit = 1000;
  bool modules = false;
  bool kernel = false;
  bool json = false;
};

std::string SymbolLine(const v1::Symbol& symbol) {
  std::string line = fmt::format("{}:0x{:x}  {:6}  {}", symbol.module(), symbol.offset(),
                                 symbol.size(), symbol.name());
  if (!symbol.version().empty()) line += fmt::format("@{}", symbol.version());
  if (symbol.ifunc()) line += "  [ifunc]";
  if (symbol.demangled() != symbol.name() && !symbol.demangled().empty()) {
    line += fmt::format("  {}", symbol.demangled());
  }
  for (const auto& alias : symbol.aliases())
    line += fmt::format("  ={}", alias);
  return line;
}

std::string KernelLine(const v1::Symbol& symbol) {
  std::string line =
      fmt::format("{:016x}  {:6}  {}", symbol.address(), symbol.size(), symbol.name());
  if (symbol.module() != "vmlinux") line += fmt::format("  [{}]", symbol.module());
  if (!symbol.obstacle().empty()) line += fmt::format("  no probe: {}", symbol.obstacle());
  return line;
}

std::string SymbolJson(const v1::Symbol& symbol) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("name").String(symbol.name());
  json.Key("demangled").String(symbol.demangled());
  json.Key("version").String(symbol.version());
  json.Key("module").String(symbol.module());
  json.Key("offset").Unsigned(symbol.offset());
  json.Key("address").Unsigned(symbol.address());
  json.Key("size").Unsigned(symbol.size());
  json.Key("ifunc").Bool(symbol.ifunc());
  json.Key("aliases").BeginArray();
  for (const auto& alias : symbol.aliases())
    json.String(alias);
  json.EndArray();
  if (!symbol.obstacle().empty()) json.Key("obstacle").String(symbol.obstacle());
  json.EndObject();
  return line;
}

std::string ModuleLine(const v1::Module& module) {
  return fmt::format("{:016x}-{:016x}  bias 0x{:x}  {}{}  {}", module.start(), module.end(),
                     module.load_bias(), module.path(), module.deleted() ? " (deleted)" : "",
                     module.build_id());
}

std::string ModuleJson(const v1::Module& module) {
  std::string line;
  JsonWriter json(line);
  json.BeginObject();
  json.Key("path").String(module.path());
  json.Key("build_id").String(module.build_id());
  json.Key("load_bias").Unsigned(module.load_bias());
  json.Key("start").Unsigned(module.start());
  json.Key("end").Unsigned(module.end());
  json.Key("deleted").Bool(module.deleted());
  json.EndObject();
  return line;
}

ExitCode Modules(const SymbolOptions& options, const std::string& parent, Api& api, Talk& talk) {
  auto modules = api.ListModules(parent);
  if (!modules) return talk.Fail(modules.error());
  for (const auto& module : *modules) {
    PrintLine(options.json ? ModuleJson(module) : ModuleLine(module));
  }
  return ExitCode::kOk;
}

// Of one file `explain` knows the nearest names.
std::string NearNames(const v1::SearchSymbolsRequest& request, Api& api) {
  v1::ExplainLocationRequest place;
  place.set_parent(request.parent());
  place.set_location(request.path() + ":" + request.pattern());
  auto explained = api.ExplainLocation(place);
  return explained ? "" : explained.error().error.metadata["suggestions"];
}

// What the name may have been.
std::string Suggestions(v1::SearchSymbolsRequest request, Api& api) {
  constexpr size_t kMostSuggestions = 5;
  std::string names = request.path().empty() ? "" : NearNames(request, api);
  if (!names.empty()) return names;
  request.set_pattern("*" + request.pattern() + "*");
  auto symbols = api.SearchSymbols(request, kMostSuggestions);
  if (!symbols) return names;
  for (const auto& symbol : *symbols)
    names += (names.empty() ? "" : ",") + symbol.name();
  return names;
}

Error NothingFound(const v1::SearchSymbolsRequest& request, Api& api) {
  std::string where = request.path().empty() ? "the target" : request.path();
  if (request.parent() == kKernelParent) where = "the kernel";
  Error error{.code = ErrorCode::kNotFound,
              .reason = "SYMBOL_NOT_FOUND",
              .message = fmt::format("no function of {} is called {}", where, request.pattern()),
              .hint = "a shell pattern such as '*read*'",
              .metadata = {}};
  if (request.pattern().empty()) {
    error.message = fmt::format("{} has no function with a name", where);
    error.hint = "install its debug symbols, or use file offsets";
    return error;
  }
  error.metadata["suggestions"] = Suggestions(request, api);
  return error;
}

// Addresses and sizes are zero where the kernel hides them.
std::string Line(const SymbolOptions& options, const v1::Symbol& symbol) {
  if (options.json) return SymbolJson(symbol);
  return options.kernel ? KernelLine(symbol) : SymbolLine(symbol);
}

ExitCode Symbols(const SymbolOptions& options, Api& api, Talk& talk) {
  auto parent = options.kernel ? kKernelParent : FindTarget(api, options.target);
  if (!parent) return talk.Fail(parent.error());
  if (options.modules) return Modules(options, *parent, api, talk);
  v1::SearchSymbolsRequest request;
  request.set_parent(*parent);
  request.set_path(AbsoluteFile(options.path, *parent));
  request.set_pattern(options.pattern);
  auto symbols = api.SearchSymbols(request, options.limit);
  if (!symbols) return talk.Fail(symbols.error());
  if (symbols->empty()) return talk.Fail(NothingFound(request, api));
  for (const auto& symbol : *symbols) {
    PrintLine(Line(options, symbol));
  }
  if (symbols->size() == options.limit) {
    talk.Note(fmt::format("the first {}; --limit shows more", options.limit));
  }
  return ExitCode::kOk;
}

}  // namespace

void AddSymbols(CLI::App& app, Invocation& invocation) {
  auto [verb, options] = AddDaemonVerb<SymbolOptions>(
      app, invocation, "symbols",
      "List functions of a file, of an attached target or of the kernel.\n"
      "Example: probectl symbols --path /usr/bin/bash 'read*'",
      Symbols, Fallback::kPrivateDaemon);
  verb->add_option("PATTERN", options->pattern, "Shell pattern of names; without: all");
  AddTargetOption(*verb, options->target);
  verb->add_flag("--kernel", options->kernel, "Functions of the running kernel");
  verb->add_option("--path", options->path, "One file; without: all modules of the target")
      ->type_name("FILE");
  verb->add_option("--limit", options->limit, "At most so many (1000)")
      ->check(Whole())
      ->type_name("N");
  verb->add_flag("--modules", options->modules, "List the target's modules instead");
  AddJsonOption(*verb, options->json);
}

}  // namespace probed::client
