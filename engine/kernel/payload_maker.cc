#include <algorithm>
#include <cstring>

#include "engine/kernel/event_schema.h"
#include "engine/lang/payload.h"

namespace probed::kernel {
namespace {

template <class T>
T Load(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

void SetSlot(uint32_t slot, uint32_t offset, uint32_t word, std::vector<std::byte>& payload) {
  const uint32_t words[] = {offset, word};
  std::memcpy(payload.data() + slot, words, sizeof(words));
}

void AppendData(uint32_t slot, std::span<const std::byte> data, std::vector<std::byte>& payload) {
  SetSlot(slot, static_cast<uint32_t>(payload.size()), static_cast<uint32_t>(data.size()), payload);
  payload.insert(payload.end(), data.begin(), data.end());
}

struct Extent {
  size_t offset = 0;
  size_t size = 0;
};

// `from` and the word there are inside of the record.
Extent ExtentOf(const DataMove& move, std::span<const std::byte> record) {
  if (move.place == FormatField::Place::kHere)
    return {move.from, move.size > 0 ? move.size : record.size() - move.from};
  const auto word = Load<uint32_t>(record, move.from);
  const size_t base = move.place == FormatField::Place::kRelLoc ? move.from + sizeof(word) : 0;
  return {base + (word & 0xffff), word >> 16};
}

bool MoveData(const DataMove& move, std::span<const std::byte> record,
              std::vector<std::byte>& payload) {
  const Extent extent = ExtentOf(move, record);
  if (extent.size == 0 && move.empty_is_fault) {
    SetSlot(move.to, 0, lang::kFaultSlot, payload);
    return true;
  }
  if (extent.offset > record.size() || extent.size > record.size() - extent.offset) return false;
  std::span<const std::byte> data = record.subspan(extent.offset, extent.size);
  if (move.is_text)
    data = data.first(
        static_cast<size_t>(std::find(data.begin(), data.end(), std::byte{0}) - data.begin()));
  AppendData(move.to, data, payload);
  return true;
}

}  // namespace

bool MakePayload(const EventPlan& plan, std::span<const std::byte> record,
                 std::vector<std::byte>& payload) {
  if (record.size() < std::max(plan.least_bytes, kCommonBytes)) return false;
  payload.assign(plan.schema.fixed_size, std::byte{0});
  for (const NumberMove& move : plan.numbers)
    std::memcpy(payload.data() + move.to, record.data() + move.from, move.size);
  for (const DataMove& move : plan.data) {
    if (!MoveData(move, record, payload)) return false;
  }
  if (plan.schema.has_text) SetText(plan, "", payload);
  return true;
}

void SetText(const EventPlan& plan, std::string_view text, std::vector<std::byte>& payload) {
  AppendData(plan.schema.fields.back().offset, std::as_bytes(std::span(text)), payload);
}

}  // namespace probed::kernel
