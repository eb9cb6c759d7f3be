#include "engine/arch/x86_64/flow/sweep.h"

#include <algorithm>

namespace probed::arch::flow {
namespace {

constexpr uint64_t kIslandBytes = 5;  // jmp rel32

// The first bytes of [address, end) that one instruction may have.
std::span<const uint8_t> Window(const CodeImage& code, uint64_t address, uint64_t end) {
  std::span<const uint8_t> bytes = code.From(address);
  return bytes.first(std::min<uint64_t>(bytes.size(), end - address));
}

}  // namespace

Sweep::Sweep(Analysis& analysis)
    : analysis_(analysis), leaves_(analysis.code.size()), odd_starts_(analysis.code.size()) {}

void Sweep::ReadAll() {
  auto function = analysis_.functions.begin();
  for (const CodeRange& segment : analysis_.code.segments()) {
    uint64_t address = segment.start;
    for (; function != analysis_.functions.end() && function->range.start < segment.end;
         ++function) {
      ReadRange({address, function->range.start}, nullptr);
      ReadRange(function->range, &*function);
      address = function->range.end;
    }
    ReadRange({address, segment.end}, nullptr);
  }
}

void Sweep::ReadRange(const CodeRange& range, Function* function) {
  uint64_t address = range.start;
  while (address < range.end) {
    auto sketch = SketchInstruction(Window(analysis_.code, address, range.end), address,
                                    analysis_.constants_are_addresses);
    if (!sketch.has_value()) {
      if (function != nullptr) function->doubts |= kUndecodable;
      ++address;
      continue;
    }
    uint64_t index = *analysis_.code.IndexOf(address);
    analysis_.starts.Add(index);
    Note(*sketch, function);
    if (sketch->is_landing) analysis_.entries.Add(index);
    address += sketch->length;
    if (sketch->leaves && address < range.end) leaves_.Add(index + sketch->length);
  }
}

void Sweep::Note(const Sketch& sketch, Function* function) {
  constexpr uint64_t kTableAlignment = 4;
  for (const Reference& reference : std::span(sketch.references).first(sketch.count)) {
    bool is_pointer = reference.kind == Reference::Kind::kAddress;
    if (is_pointer && reference.address % kTableAlignment == 0) {
      bases_.push_back({reference.address, function});
    }
    auto index = analysis_.code.IndexOf(reference.address);
    if (!index.has_value()) continue;
    analysis_.entries.Add(*index);
    if (function == nullptr) {
      pending_.push_back(*index);
    } else if (is_pointer || reference.kind == Reference::Kind::kConstant) {
      function->names_inside |=
          reference.address > function->range.start && reference.address < function->range.end;
    }
  }
  if (function == nullptr) return;
  function->jumps_indirectly |= sketch.is_indirect_jump;
  if (function->names_inside && function->jumps_indirectly) function->doubts |= kComputedJump;
}

void Sweep::ReadFromEntries() {
  uint64_t size = analysis_.code.size();
  for (uint64_t index = analysis_.entries.FindFrom(0, size); index < size;
       index = analysis_.entries.FindFrom(index + 1, size)) {
    pending_.push_back(index);
    while (!pending_.empty()) {
      uint64_t next = pending_.back();
      pending_.pop_back();
      ReadOdd(next);
    }
  }
}

void Sweep::ReadOdd(uint64_t index) {
  uint64_t address = analysis_.code.AddressOf(index);
  while (index < analysis_.code.size() && !analysis_.starts.Has(index) && !odd_starts_.Has(index)) {
    odd_starts_.Add(index);
    auto sketch =
        SketchInstruction(analysis_.code.From(address), address, analysis_.constants_are_addresses);
    if (!sketch.has_value()) return;
    Note(*sketch, nullptr);
    if (sketch->leaves) return;
    address += sketch->length;
    index += sketch->length;
  }
}

void Sweep::FindDeadBytes() {
  uint64_t size = analysis_.code.size();
  for (Function& function : analysis_.functions) {
    uint64_t first = *analysis_.code.IndexOf(function.range.start);
    uint64_t end = first + (function.range.end - function.range.start);
    for (uint64_t index = leaves_.FindFrom(first, end); index < end;
         index = leaves_.FindFrom(index + 1, end)) {
      CheckBehind(function.range.start + (index - first), &function);
    }
    if (end < size) CheckBehind(function.range.end, nullptr);
  }
}

// `address` is behind an instruction that leaves, or behind a function.
void Sweep::CheckBehind(uint64_t address, Function* function) {
  uint64_t next = analysis_.SkipPadding(address);
  if (next - address >= kIslandBytes) analysis_.padding.push_back({address, next});
  if (function == nullptr || next >= function->range.end || analysis_.IsEntered(next)) return;
  function->doubts |= kUnknownEntry;
}

}  // namespace probed::arch::flow
