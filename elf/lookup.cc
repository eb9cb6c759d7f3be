#include "elf/lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "elf/cxx_name.h"
#include "elf/demangle.h"
#include "elf/headers.h"
#include "elf/suggest.h"

namespace probed::elf {
namespace {

constexpr size_t kMaxSuggestions = 5;
constexpr size_t kMaxChoices = 32;

struct WantedName {
  std::string name;
  std::optional<std::string> version;
};

// "memcpy@GLIBC_2.2.5"; both @ and @@ select by version alone.
WantedName SplitWanted(const std::string& typed) {
  size_t at = typed.find('@');
  if (at == std::string::npos || at == 0) return {.name = typed, .version = std::nullopt};
  size_t start = typed.find_first_not_of('@', at);
  return {.name = typed.substr(0, at),
          .version = start == std::string::npos ? "" : typed.substr(start)};
}

void KeepVersion(const std::optional<std::string>& version, std::vector<Symbol>* symbols) {
  if (!version) return;
  std::erase_if(*symbols, [&](const Symbol& symbol) { return symbol.version != *version; });
}

// The name "as the dynamic linker would take it": default versions before old ones, exported
// symbols before a file's own.
void KeepPreferred(std::vector<Symbol>* symbols) {
  auto rank = [](const Symbol& symbol) {
    return std::tuple(!symbol.default_version, !symbol.global);
  };
  auto best = std::min_element(symbols->begin(), symbols->end(),
                               [&](const Symbol& a, const Symbol& b) { return rank(a) < rank(b); });
  if (best == symbols->end()) return;
  auto best_rank = rank(*best);
  std::erase_if(*symbols, [&](const Symbol& symbol) { return rank(symbol) != best_rank; });
}

bool OneAddress(const std::vector<Symbol>& symbols) {
  return std::all_of(symbols.begin(), symbols.end(), [&](const Symbol& symbol) {
    return symbol.address == symbols.front().address;
  });
}

std::string Spelled(const Symbol& symbol) {
  return symbol.version.empty() ? symbol.name : symbol.name + "@" + symbol.version;
}

// Something that selects `symbol` alone: its full name, or its file offset when that is not enough.
std::string ChoiceFor(const LookupContext& context, const std::vector<Symbol>& symbols,
                      const Symbol& symbol) {
  auto twins = std::count_if(symbols.begin(), symbols.end(), [&](const Symbol& other) {
    return Spelled(other) == Spelled(symbol);
  });
  auto offset = ToOffset(context.segments, symbol.address);
  return twins > 1 && offset ? fmt::format("{:#x}", offset->value) : Spelled(symbol);
}

Error Ambiguous(const LookupContext& context, const std::string& name,
                const std::vector<Symbol>& symbols) {
  std::string choices, described;
  for (const Symbol& symbol : symbols) {
    std::string_view separator = choices.empty() ? "" : ",";
    std::string choice = ChoiceFor(context, symbols, symbol);
    choices += fmt::format("{}{}", separator, choice);
    described += fmt::format("{} {} = {}", separator, choice, Demangle(symbol.name));
    if (std::count(choices.begin(), choices.end(), ',') + 1 >= static_cast<long>(kMaxChoices))
      break;
  }
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = "SYMBOL_AMBIGUOUS",
               .message = fmt::format("{} functions of {} are called {}:{}", symbols.size(),
                                      context.path, name, described),
               .hint = "use one of: " + choices,
               .metadata = {{"symbol", name}, {"path", context.path}, {"choices", choices}}};
}

Error IsImport(const LookupContext& context, const std::string& name) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "SYMBOL_IS_IMPORT",
               .message = fmt::format("{} uses {} from another file", context.path, name),
               .hint = "name the library that defines it",
               .metadata = {{"symbol", name}, {"path", context.path}}};
}

Error NotFound(const LookupContext& context, const std::string& name,
               const std::vector<Symbol>& instead) {
  auto near = SuggestNames(instead, name, kMaxSuggestions);
  std::string list = fmt::format("{}", fmt::join(near, ","));
  Error error{.code = ErrorCode::kNotFound,
              .reason = "SYMBOL_NOT_FOUND",
              .message = fmt::format("{} has no symbol {}", context.path, name),
              .hint = near.empty() ? "'probectl symbols --path FILE' lists what there is; a "
                                     "stripped file has what it exports, and offsets"
                                   : "did you mean " + list + "?",
              .metadata = {{"symbol", name}, {"path", context.path}}};
  if (!near.empty()) error.metadata["suggestions"] = list;
  return error;
}

bool MatchesDemangled(const std::string& symbol_name, const std::string& wanted) {
  std::string demangled = Demangle(symbol_name);
  if (demangled == symbol_name) return false;
  if (demangled == wanted) return true;
  std::string_view bare = WithoutSignature(demangled);
  return bare == wanted || WithoutTemplateArguments(bare) == wanted;
}

std::vector<Symbol> FunctionsDemangledAs(const SymbolIndex& index, const std::string& name,
                                         std::string_view mangled_part) {
  std::vector<Symbol> found;
  for (const Symbol& symbol : index.functions()) {
    if (!LooksMangled(symbol.name)) continue;
    if (symbol.name.find(mangled_part) == std::string::npos) continue;
    if (MatchesDemangled(symbol.name, name)) found.push_back(symbol);
  }
  return found;
}

// Demangling every name of a large file takes long, so first only those that spell the identifier
// out. The ABI abbreviates some of namespace std.
std::vector<Symbol> FunctionsDemangledAs(const SymbolIndex& index, const std::string& name) {
  auto found = FunctionsDemangledAs(index, name, LastIdentifier(name));
  if (found.empty() && name.find("std::") != std::string::npos) {
    found = FunctionsDemangledAs(index, name, "");
  }
  return found;
}

Result<Symbol> Choose(const LookupContext& context, const std::string& name,
                      std::vector<Symbol> symbols) {
  KeepPreferred(&symbols);
  if (!OneAddress(symbols)) return Ambiguous(context, name, symbols);
  return symbols.front();
}

}  // namespace

Result<Symbol> LookUpFunction(const LookupContext& context, const std::string& name) {
  WantedName wanted = SplitWanted(name);
  std::vector<Symbol> symbols = context.index.FunctionsNamed(wanted.name);
  if (symbols.empty()) symbols = context.index.LabelsNamed(wanted.name);
  KeepVersion(wanted.version, &symbols);
  if (symbols.empty() && !wanted.version) symbols = FunctionsDemangledAs(context.index, name);
  if (!symbols.empty()) return Choose(context, name, std::move(symbols));
  if (context.index.Imports(wanted.name)) return IsImport(context, wanted.name);
  return NotFound(context, name, context.index.functions());
}

Result<Symbol> LookUpObject(const LookupContext& context, const std::string& name) {
  WantedName wanted = SplitWanted(name);
  std::vector<Symbol> symbols = context.index.ObjectsNamed(wanted.name);
  if (symbols.empty()) symbols = context.index.LabelsNamed(wanted.name);
  KeepVersion(wanted.version, &symbols);
  if (!symbols.empty()) return Choose(context, name, std::move(symbols));
  if (context.index.Imports(wanted.name)) return IsImport(context, wanted.name);
  return NotFound(context, name, context.index.objects());
}

}  // namespace probed::elf
