#include "engine/kernel/functions.h"

#include <algorithm>
#include <charconv>

#include "base/file.h"

namespace probed::kernel {
namespace {

struct Line {
  KernelFunction symbol;
  bool is_function = false;
};

std::string_view TakeWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

// "ffffffffc020e000 t kprobe_insn_page\t[MODULE]"
bool ParseLine(std::string_view text, Line& line) {
  const std::string_view address = TakeWord(text), type = TakeWord(text), name = TakeWord(text);
  std::string_view module = TakeWord(text);
  const char* end = address.data() + address.size();
  if (std::from_chars(address.data(), end, line.symbol.address, 16).ptr != end) return false;
  if (type.size() != 1 || name.empty()) return false;
  if (module.starts_with('[') && module.ends_with(']'))
    module = module.substr(1, module.size() - 2);
  line.is_function = std::string_view("tTwW").find(type[0]) != std::string_view::npos;
  line.symbol.name = name;
  line.symbol.module = module;
  return true;
}

std::vector<Line> ParseLines(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    Line line;
    if (ParseLine(text.substr(0, end), line)) lines.push_back(std::move(line));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::vector<KernelFunction> ParseKallsyms(std::string_view text) {
  std::vector<Line> lines = ParseLines(text);
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
    return a.symbol.address < b.symbol.address;
  });
  std::vector<KernelFunction> functions;
  const KernelFunction* next = nullptr;  // the nearest symbol behind, of whatever kind
  for (size_t i = lines.size(); i-- > 0;) {
    KernelFunction& symbol = lines[i].symbol;
    if (i + 1 < lines.size() && lines[i + 1].symbol.address > symbol.address)
      next = &lines[i + 1].symbol;
    if (next != nullptr && next->module == symbol.module)
      symbol.size = next->address - symbol.address;
    if (lines[i].is_function) functions.push_back(symbol);
  }
  std::reverse(functions.begin(), functions.end());
  return functions;
}

Result<std::vector<KernelFunction>> ReadFunctions(const std::string& kallsyms) {
  PROBED_TRY(const std::string text, ReadFile(kallsyms));
  return ParseKallsyms(text);
}

}  // namespace probed::kernel
