#include "elf/suggest.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/edit_distance.h"
#include "elf/cxx_name.h"
#include "elf/demangle.h"

namespace probed::elf {
namespace {

constexpr size_t kMaxSpread = 12;  // of scores, so that a near name is not drowned in far ones
constexpr size_t kMaxShortlist = 64;
constexpr size_t kMaxCompared = 96;  // characters; names longer than this are not typing mistakes

std::string ToLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// The last identifier of an Itanium nested name, read off its length prefixes without demangling.
std::string_view MangledIdentifier(std::string_view mangled) {
  std::string_view identifier;
  size_t i = mangled.find_first_of("0123456789", 2);
  while (i < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[i])) != 0) {
    size_t length = 0;
    for (; i < mangled.size() && std::isdigit(static_cast<unsigned char>(mangled[i])) != 0; ++i) {
      length =
          std::min<size_t>(length * 10 + static_cast<size_t>(mangled[i] - '0'), mangled.size());
    }
    identifier = mangled.substr(std::min(i, mangled.size()), length);
    i += length;
  }
  return identifier;
}

std::string_view ComparableName(const Symbol& symbol) {
  std::string_view name = symbol.name;
  return LooksMangled(name) ? MangledIdentifier(name) : name;
}

// Lower is nearer.
std::optional<size_t> Score(const std::string& typed, std::string_view name) {
  if (name.empty() || name.size() > kMaxCompared) return std::nullopt;
  std::string lower = ToLower(name);
  size_t limit = 1 + typed.size() / 4;
  size_t distance = EditDistance(typed, lower, limit);
  if (distance <= limit) return 4 * distance;
  bool contains = typed.size() >= 3 && lower.find(typed) != std::string::npos;
  if (contains) return 6 + lower.size() - typed.size();
  return std::nullopt;
}

struct Candidate {
  size_t score;
  const Symbol* symbol;
};

// The nearest identifiers; more than are asked for, because several classes may share one.
std::vector<Candidate> NearestIdentifiers(const std::vector<Symbol>& functions,
                                          const std::string& wanted) {
  std::vector<Candidate> candidates;
  for (const Symbol& symbol : functions) {
    auto score = Score(wanted, ComparableName(symbol));
    if (score) candidates.push_back({*score, &symbol});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  candidates.resize(std::min(candidates.size(), kMaxShortlist));
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.score > candidates.front().score + kMaxSpread;
  });
  return candidates;
}

struct Suggestion {
  size_t score;
  std::string name;
};

std::vector<Suggestion> NameSuggestions(const std::vector<Candidate>& candidates,
                                        std::string_view typed) {
  std::vector<Suggestion> suggestions;
  for (const Candidate& candidate : candidates) {
    std::string demangled = Demangle(candidate.symbol->name);
    std::string name(WithoutSignature(demangled));
    // The list is separated by commas.
    if (name.find(',') != std::string::npos || name.size() > kMaxCompared) continue;
    suggestions.push_back({candidate.score + EditDistance(typed, name, kMaxCompared), name});
  }
  std::stable_sort(suggestions.begin(), suggestions.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.score < b.score; });
  return suggestions;
}

}  // namespace

std::vector<std::string> SuggestNames(const std::vector<Symbol>& functions, std::string_view typed,
                                      size_t limit) {
  std::string_view identifier = LastIdentifier(typed);
  std::string wanted = ToLower(identifier.empty() ? typed : identifier);
  if (wanted.size() > kMaxCompared) return {};
  std::vector<std::string> names;
  for (auto& [score, name] : NameSuggestions(NearestIdentifiers(functions, wanted), typed)) {
    bool is_new = std::find(names.begin(), names.end(), name) == names.end();
    if (is_new && names.size() < limit) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace probed::elf
