#include "engine/kernel/place.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "base/edit_distance.h"

namespace probed::kernel {
namespace {

constexpr size_t kMostSuggestions = 5;

struct Location {
  std::string module, symbol;
  uint64_t offset = 0;
  std::optional<uint64_t> address;  // instead of a symbol
};

Error Invalid(const std::string& location) {
  return Error{ErrorCode::kInvalidArgument,
               "KERNEL_PLACE_INVALID",
               location + " is no place in the kernel",
               "[MODULE:]SYMBOL[+OFFSET] or 0xADDRESS",
               {}};
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, number, hex ? 16 : 10).ptr != end)
    return std::nullopt;
  return number;
}

Result<Location> Parse(const std::string& text) {
  Location location;
  if (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    location.address = ParseNumber(text);
    return location.address ? Result<Location>(location) : Invalid(text);
  }
  std::string_view rest = text;
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    location.module = rest.substr(0, colon);
    rest.remove_prefix(colon + 1);
  }
  if (const size_t plus = rest.find('+'); plus != std::string_view::npos) {
    const auto offset = ParseNumber(rest.substr(plus + 1));
    if (!offset) return Invalid(text);
    location.offset = *offset;
    rest = rest.substr(0, plus);
  }
  location.symbol = rest;
  return rest.empty() ? Invalid(text) : Result<Location>(location);
}

// What the compiler has made of `symbol` first, then what it may have been meant to be.
std::vector<std::string> Suggestions(const Facts& facts, const std::string& symbol) {
  std::vector<std::string> parts, near;
  size_t least = std::min<size_t>(symbol.size() / 3 + 1, 4);
  for (const KernelFunction& function : facts.functions) {
    if (function.name.starts_with(symbol + ".")) parts.push_back(function.name);
    const size_t distance = EditDistance(function.name, symbol, least);
    if (distance >= least) continue;
    least = distance;
    near.insert(near.begin(), function.name);
  }
  parts.insert(parts.end(), near.begin(), near.end());
  parts.resize(std::min(parts.size(), kMostSuggestions));
  return parts;
}

Error NotFound(const Facts& facts, const std::string& location, const std::string& symbol) {
  const auto names = Suggestions(facts, symbol);
  const bool split = !names.empty() && names[0].starts_with(symbol + ".");
  Error error{ErrorCode::kNotFound,
              "KERNEL_SYMBOL_NOT_FOUND",
              fmt::format("the running kernel has no function {}", location),
              split
                  ? "the compiler has kept other forms of it only: " + names[0]
                  : "misspelled, inlined wherever it is called, or of a module that is not loaded",
              {}};
  for (const std::string& name : names) {
    std::string& list = error.metadata["suggestions"];
    list += (list.empty() ? "" : ",") + name;
  }
  return error;
}

bool IsModule(const KernelFunction& function, const std::string& module) {
  return module.empty() || function.module == module ||
         (module == "vmlinux" && function.module.empty());
}

Result<KernelPlace> AtAddress(const Facts& facts, uint64_t address) {
  const auto after = std::upper_bound(
      facts.functions.begin(), facts.functions.end(), address,
      [](uint64_t wanted, const KernelFunction& function) { return wanted < function.address; });
  if (after == facts.functions.begin()) return Invalid(fmt::format("{:#x}", address));
  const KernelFunction& function = *std::prev(after);
  if (address - function.address >= std::max<uint64_t>(function.size, 1))
    return Invalid(fmt::format("{:#x}", address));
  return KernelPlace{.function = function, .offset = address - function.address, .obstacle = {}};
}

bool IsBlacklisted(const Facts& facts, uint64_t address) {
  if (!facts.kprobes || address == 0) return false;
  const auto& ranges = facts.kprobes->blacklist;
  return std::any_of(ranges.begin(), ranges.end(), [&](const BlacklistedRange& range) {
    return address >= range.begin && address < range.end;
  });
}

std::optional<std::unordered_set<std::string>> ReadTraceable(const Tracefs& tracefs) {
  const auto text = tracefs.Read("available_filter_functions");
  if (!text.ok()) return std::nullopt;
  std::unordered_set<std::string> names;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    names.insert(line.substr(0, line.find_first_of(" \t")));
  return names;
}

// Of several names of one function ftrace's list has one.
void AddAliases(const std::vector<KernelFunction>& functions,
                std::unordered_set<std::string>& names) {
  for (auto first = functions.begin(); first != functions.end();) {
    const auto end = std::find_if(first, functions.end(), [&](const KernelFunction& function) {
      return function.address != first->address;
    });
    const bool traceable = std::any_of(
        first, end, [&](const KernelFunction& function) { return names.contains(function.name); });
    if (traceable && first->address != 0)
      std::for_each(first, end,
                    [&](const KernelFunction& function) { names.insert(function.name); });
    first = end;
  }
}

}  // namespace

Result<Facts> ReadFacts(const FactPlaces& places) {
  Facts facts;
  PROBED_TRY(facts.functions, ReadFunctions(places.kallsyms));
  if (auto kprobes = ReadKprobes(places.kprobes); kprobes.ok()) facts.kprobes = *std::move(kprobes);
  if (const auto tracefs = Tracefs::Find(places.tracefs); tracefs.ok()) {
    facts.traceable = ReadTraceable(*tracefs);
    if (facts.traceable) AddAliases(facts.functions, *facts.traceable);
    facts.has_kprobe_events = tracefs->Has("kprobe_events");
  }
  return facts;
}

std::string ObstacleOf(const Facts& facts, const KernelFunction& function, uint64_t offset) {
  if (IsBlacklisted(facts, function.address == 0 ? 0 : function.address + offset))
    return "on the kernel's blacklist of kprobes: handling one leads through this code";
  // kernel/trace/trace_kprobe.c, within_notrace_func
  if (facts.traceable && !facts.traceable->contains(function.name))
    return "notrace: compiled without an entry for ftrace, which probe events insist on";
  return "";
}

Result<KernelPlace> ExplainPlace(const Facts& facts, const std::string& text) {
  PROBED_TRY(const Location location, Parse(text));
  if (location.address) {
    PROBED_TRY(KernelPlace place, AtAddress(facts, *location.address));
    place.obstacle = ObstacleOf(facts, place.function, place.offset);
    return place;
  }
  std::vector<const KernelFunction*> found;
  for (const KernelFunction& function : facts.functions)
    if (function.name == location.symbol && IsModule(function, location.module))
      found.push_back(&function);
  if (found.empty()) return NotFound(facts, text, location.symbol);
  KernelPlace place{.function = *found[0], .offset = location.offset, .obstacle = {}};
  const uint64_t size = place.function.size;
  if (found.size() > 1)
    place.obstacle = fmt::format(
        "ambiguous: {} functions have this name; newer kernels refuse it, "
        "older ones take the first. An address tells them apart",
        found.size());
  else if (size != 0 && location.offset >= size)
    place.obstacle = fmt::format("outside the function, which has {} bytes", size);
  else
    place.obstacle = ObstacleOf(facts, place.function, place.offset);
  if (place.obstacle.empty() && !facts.has_kprobe_events)
    place.obstacle = "this kernel has no kprobe events, or keeps them from probed";
  return place;
}

}  // namespace probed::kernel
