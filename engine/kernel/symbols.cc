#include "engine/kernel/symbols.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/file.h"

namespace probed::kernel {
namespace {

std::string_view TakeUntil(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return head;
}

std::optional<uint64_t> ToAddress(std::string_view text) {
  uint64_t address = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), address, 16);
  if (error != std::errc() || end != text.data() + text.size() || address == 0) return std::nullopt;
  return address;
}

// "ffffffff81000000 T name\t[module]"; the address is 0 for whom the kernel hides it from.
std::optional<Symbols::Symbol> ParseSymbol(std::string_view line) {
  const auto address = ToAddress(TakeUntil(line, ' '));
  TakeUntil(line, ' ');
  Symbols::Symbol symbol;
  symbol.name = TakeUntil(line, '\t');
  if (line.size() > 2) symbol.module = line.substr(1, line.size() - 2);
  if (!address || symbol.name.empty()) return std::nullopt;
  symbol.address = *address;
  return symbol;
}

// `0xffffffff8281972f : "text"`, with \n and \t written out.
std::optional<std::pair<uint64_t, std::string>> ParseString(std::string_view line) {
  if (!line.starts_with("0x")) return std::nullopt;
  line.remove_prefix(2);
  const auto address = ToAddress(TakeUntil(line, ' '));
  const size_t open = line.find('"');
  const size_t close = line.rfind('"');
  if (!address || open == line.npos || close <= open) return std::nullopt;
  return std::pair(*address, std::string(line.substr(open + 1, close - open - 1)));
}

}  // namespace

std::shared_ptr<const Symbols> Symbols::Parse(std::string_view kallsyms, std::string_view formats) {
  auto parsed = std::make_shared<Symbols>();
  while (!kallsyms.empty()) {
    if (auto symbol = ParseSymbol(TakeUntil(kallsyms, '\n')))
      parsed->symbols_.push_back(*std::move(symbol));
  }
  std::stable_sort(parsed->symbols_.begin(), parsed->symbols_.end(),
                   [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
  while (!formats.empty()) {
    if (auto string = ParseString(TakeUntil(formats, '\n')))
      parsed->strings_.insert(*std::move(string));
  }
  return parsed;
}

std::shared_ptr<const Symbols> Symbols::Load(const std::string& tracefs_directory) {
  const auto kallsyms = ReadFile("/proc/kallsyms");
  const auto formats = ReadFile(tracefs_directory + "/printk_formats");
  return Parse(kallsyms.ok() ? *kallsyms : "", formats.ok() ? *formats : "");
}

std::vector<Symbols::Symbol>::const_iterator Symbols::Above(uint64_t address) const {
  return std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](uint64_t value, const Symbol& symbol) { return value < symbol.address; });
}

const Symbols::Symbol* Symbols::Find(uint64_t address) const {
  const auto above = Above(address);
  if (above == symbols_.begin()) return nullptr;
  auto found = above - 1;
  while (found != symbols_.begin() && (found - 1)->address == found->address)
    --found;
  return &*found;
}

bool Symbols::IsInCore(uint64_t address) const {
  const auto above = Above(address);
  return above != symbols_.begin() && above != symbols_.end() && (above - 1)->module.empty() &&
         above->module.empty();
}

uint64_t Symbols::SizeOf(const Symbol& symbol) const {
  const auto above = Above(symbol.address);
  return above == symbols_.end() ? 0 : above->address - symbol.address;
}

}  // namespace probed::kernel
