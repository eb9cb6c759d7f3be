#include "engine/arch/x86_64/flow/analysis.h"

#include <algorithm>

#include "engine/arch/x86_64/flow/sweep.h"
#include "engine/arch/x86_64/flow/tables.h"

namespace probed::arch::flow {
namespace {

// Ranges as functions that do not overlap: where one begins, the one before it ends.
std::vector<Function> FunctionsOf(const ModuleImage& image, const CodeImage& code) {
  std::vector<CodeRange> ranges;
  for (const CodeRange& range : image.functions) {
    if (range.start < range.end && code.Contains(range.start)) ranges.push_back(range);
  }
  std::sort(ranges.begin(), ranges.end(), [](const CodeRange& a, const CodeRange& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  std::vector<Function> functions;
  for (const CodeRange& range : ranges) {
    if (!functions.empty() && functions.back().range.start == range.start) continue;
    uint64_t end = std::min(range.end, range.start + code.From(range.start).size());
    if (!functions.empty()) {
      CodeRange& before = functions.back().range;
      // What an outer function holds behind an inner one belongs to the inner one.
      if (before.end > range.start) end = std::max(end, before.end);
      before.end = std::min(before.end, range.start);
    }
    functions.push_back({.range = {range.start, end}});
  }
  return functions;
}

void AddEntries(const ModuleImage& image, Analysis& analysis) {
  for (const Function& function : analysis.functions)
    analysis.entries.Add(*analysis.code.IndexOf(function.range.start));
  for (uint64_t entry : image.entries) {
    if (auto index = analysis.code.IndexOf(entry)) analysis.entries.Add(*index);
  }
}

}  // namespace

const Function* Analysis::FunctionAt(uint64_t address) const {
  auto next = std::upper_bound(
      functions.begin(), functions.end(), address,
      [](uint64_t value, const Function& function) { return value < function.range.start; });
  if (next == functions.begin()) return nullptr;
  const Function& function = *std::prev(next);
  return address < function.range.end ? &function : nullptr;
}

bool Analysis::IsStart(uint64_t address) const {
  auto index = code.IndexOf(address);
  return index.has_value() && starts.Has(*index);
}

bool Analysis::IsEntered(uint64_t address) const {
  auto index = code.IndexOf(address);
  return index.has_value() && entries.Has(*index);
}

uint64_t Analysis::FindEntry(uint64_t start, uint64_t end) const {
  auto index = code.IndexOf(start);
  if (!index.has_value() || end <= start + 1) return end;
  uint64_t last = *index + std::min<uint64_t>(end - start, code.From(start).size());
  uint64_t found = entries.FindFrom(*index + 1, last);
  return found == last ? end : start + (found - *index);
}

uint64_t Analysis::SkipPadding(uint64_t start) const {
  uint64_t address = start;
  while (!IsEntered(address)) {
    auto sketch = SketchInstruction(code.From(address), address, false);
    if (!sketch.has_value() || !sketch->is_padding) break;
    uint64_t next = address + sketch->length;
    address = FindEntry(address, next);
    if (address != next) break;
  }
  return address;
}

Result<Analysis> Analyze(const ModuleImage& image) {
  PROBED_TRY(CodeImage code, CodeImage::Copy(image));
  Analysis analysis(std::move(code));
  analysis.constants_are_addresses = !image.position_independent;
  analysis.functions = FunctionsOf(image, analysis.code);
  AddEntries(image, analysis);
  Sweep sweep(analysis);
  sweep.ReadAll();
  AddDataWords(image, analysis);
  PROBED_RETURN_IF_ERROR(FollowTables(image, sweep, analysis));
  sweep.FindDeadBytes();
  return analysis;
}

}  // namespace probed::arch::flow
