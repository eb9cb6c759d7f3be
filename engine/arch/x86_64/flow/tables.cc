#include "engine/arch/x86_64/flow/tables.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace probed::arch::flow {
namespace {

constexpr uint64_t kMaxEntries = 1 << 16;  // of one table
constexpr uint64_t kMaxWords = uint64_t{1} << 29;
constexpr int kMaxRounds = 16;  // of tables whose code names further tables

template <class Integer>
Integer WordAt(std::span<const uint8_t> bytes, uint64_t offset) {
  Integer word;
  std::memcpy(&word, &bytes[offset], sizeof word);
  return word;
}

class TableReader {
 public:
  TableReader(const ModuleImage& image, Analysis& analysis) : analysis_(analysis) {
    for (const ModuleImage::Segment& segment : image.segments)
      segments_.push_back(&segment);
    std::sort(segments_.begin(), segments_.end(),
              [](const auto* a, const auto* b) { return a->address < b->address; });
  }

  // `next`: the next address that code names. False: too much was read.
  bool Read(const TableBase& base, uint64_t next) {
    const ModuleImage::Segment* segment = SegmentAt(base.address);
    if (segment == nullptr) return true;
    uint64_t at = base.address - segment->address;
    // As compilers write a table: without holes.
    for (uint64_t left = kMaxEntries; left > 0; --left, at += sizeof(int32_t)) {
      uint64_t target = 0;
      if (!TakeTarget(*segment, base, at, target)) return words_ < kMaxWords;
      if (!IsCode(target)) break;
      Add(target);
    }
    // The first cases may be missing, and data in code is code.
    uint64_t end = segment->executable ? 0 : next - segment->address;
    for (uint64_t target = 0; at < end && TakeTarget(*segment, base, at, target);
         at += sizeof(int32_t)) {
      if (IsInside(base.user, target)) Add(target);
    }
    return words_ < kMaxWords;
  }

 private:
  const ModuleImage::Segment* SegmentAt(uint64_t address) const {
    auto next = std::upper_bound(segments_.begin(), segments_.end(), address,
                                 [](uint64_t value, const ModuleImage::Segment* segment) {
                                   return value < segment->address;
                                 });
    if (next == segments_.begin()) return nullptr;
    const ModuleImage::Segment* segment = *std::prev(next);
    return address - segment->address < segment->bytes.size() ? segment : nullptr;
  }

  bool TakeTarget(const ModuleImage::Segment& segment, const TableBase& base, uint64_t at,
                  uint64_t& target) {
    if (at > segment.bytes.size() || segment.bytes.size() - at < sizeof(int32_t)) return false;
    target = base.address + static_cast<uint64_t>(int64_t{WordAt<int32_t>(segment.bytes, at)});
    return ++words_ < kMaxWords;
  }

  // Where functions do not decode, any byte may start an instruction.
  bool IsCode(uint64_t address) const {
    if (analysis_.IsStart(address)) return true;
    const Function* function = analysis_.FunctionAt(address);
    return function != nullptr && (function->doubts & kUndecodable) != 0;
  }

  bool IsInside(const Function* function, uint64_t address) const {
    return function != nullptr &&
           address - function->range.start < function->range.end - function->range.start &&
           IsCode(address);
  }

  void Add(uint64_t address) { analysis_.entries.Add(*analysis_.code.IndexOf(address)); }

  Analysis& analysis_;
  uint64_t words_ = 0;
  std::vector<const ModuleImage::Segment*> segments_;
};

Error TooComplex() {
  return {.code = ErrorCode::kFailedPrecondition,
          .reason = "FLOW_TOO_COMPLEX",
          .message = "the module's tables name ever more tables",
          .hint = "",
          .metadata = {}};
}

}  // namespace

void AddDataWords(const ModuleImage& image, Analysis& analysis) {
  for (const ModuleImage::Segment& segment : image.segments) {
    if (segment.executable) continue;
    uint64_t misaligned = segment.address % sizeof(uint64_t);
    uint64_t at = misaligned == 0 ? 0 : sizeof(uint64_t) - misaligned;
    for (; at < segment.bytes.size() && segment.bytes.size() - at >= sizeof(uint64_t);
         at += sizeof(uint64_t)) {
      auto index = analysis.code.IndexOf(WordAt<uint64_t>(segment.bytes, at));
      if (index.has_value()) analysis.entries.Add(*index);
    }
  }
}

Status FollowTables(const ModuleImage& image, Sweep& sweep, Analysis& analysis) {
  TableReader reader(image, analysis);
  std::set<std::pair<uint64_t, const Function*>> known;
  for (int round = 0; round < kMaxRounds; ++round) {
    sweep.ReadFromEntries();
    std::vector<TableBase> bases = sweep.TakeTableBases();
    std::erase_if(bases, [&](const TableBase& base) {
      return !known.insert({base.address, base.user}).second;
    });
    if (bases.empty()) return {};
    for (const TableBase& base : bases) {
      auto next = known.lower_bound({base.address + 1, nullptr});
      uint64_t end = next == known.end() ? UINT64_MAX : next->first;
      if (!reader.Read(base, end)) return TooComplex();
    }
  }
  return TooComplex();
}

}  // namespace probed::arch::flow
