#include "engine/kernel/page.h"

#include <cstring>

#include <fmt/format.h>

namespace probed::kernel {
namespace {

constexpr size_t kHeaderBytes = 16;  // time stamp, and how much is committed
constexpr uint64_t kCommitMask = (1 << 20) - 1;
constexpr uint64_t kEventsMissed = 1u << 31;  // RB_MISSED_EVENTS
constexpr uint64_t kMissedStored = 1u << 30;  // RB_MISSED_STORED: so many, behind the data

// enum ring_buffer_type, in the lower five bits of an event's first word; what is smaller than
// kPadding is the length of data in words. The other bits are the time since the event before.
constexpr uint32_t kTypeBits = 5;
constexpr uint32_t kDataWithLength = 0;
constexpr uint32_t kPadding = 29;
constexpr uint32_t kTimeExtend = 30;
constexpr uint32_t kTimeStamp = 31;
constexpr uint32_t kDeltaBits = 32 - kTypeBits;
constexpr uint64_t kStampMask = (uint64_t{1} << 59) - 1;  // of an absolute one; the rest goes on

template <class T>
T Load(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

PageLoss LossOf(std::span<const std::byte> bytes, uint64_t commit) {
  PageLoss loss{.any = (commit & kEventsMissed) != 0, .events = std::nullopt};
  const size_t end = kHeaderBytes + (commit & kCommitMask);
  if (loss.any && (commit & kMissedStored) != 0 && bytes.size() >= end + sizeof(uint64_t))
    loss.events = Load<uint64_t>(bytes, end);
  return loss;
}

}  // namespace

Result<Page> Page::Open(std::span<const std::byte> bytes) {
  Error error{.code = ErrorCode::kInternal,
              .reason = "BAD_PAGE",
              .message = fmt::format("a page of {} bytes of the kernel's ring", bytes.size()),
              .hint = "",
              .metadata = {}};
  if (bytes.size() < kHeaderBytes) return error;
  const auto commit = Load<uint64_t>(bytes, sizeof(uint64_t));
  const uint64_t size = commit & kCommitMask;
  if (size > bytes.size() - kHeaderBytes) {
    error.message += fmt::format(" that holds {}", size);
    return error;
  }
  return Page(Load<uint64_t>(bytes, 0), bytes.subspan(kHeaderBytes, size), LossOf(bytes, commit));
}

void Page::End(bool damaged) {
  damaged_ |= damaged;
  data_ = {};
}

std::optional<uint32_t> Page::TakeWord() {
  if (data_.size() < sizeof(uint32_t)) return std::nullopt;
  const auto word = Load<uint32_t>(data_, 0);
  data_ = data_.subspan(sizeof(word));
  return word;
}

bool Page::Skip(uint32_t bytes) {
  if (bytes > data_.size()) return false;
  data_ = data_.subspan(bytes);
  return true;
}

bool Page::TakeData(uint32_t bytes, PageEvent& event) {
  if (bytes > data_.size()) return false;
  event = {time_, data_.first(bytes)};
  const uint32_t rounded = (bytes + 3) & ~3u;
  data_ = data_.subspan(rounded < data_.size() ? rounded : data_.size());
  return true;
}

// One item of the page; `event` has a record if it was one. False: it makes no sense.
bool Page::Step(PageEvent& event) {
  const auto head = TakeWord();
  if (!head) return false;
  const uint32_t type = *head & ((1u << kTypeBits) - 1);
  const uint64_t delta = *head >> kTypeBits;
  if (type == kPadding && delta == 0) {  // the rest of the page
    End(false);
    return true;
  }
  if (type > kDataWithLength && type < kPadding) {
    time_ += delta;
    return TakeData(type * 4, event);
  }
  const auto word = TakeWord();
  if (!word) return false;
  const uint64_t extended = (uint64_t{*word} << kDeltaBits) + delta;
  switch (type) {
    case kTimeStamp:
      time_ = (time_ & ~kStampMask) | (extended & kStampMask);
      return true;
    case kTimeExtend:
      time_ += extended;
      return true;
    case kPadding:  // an event that was discarded; the length counts its own word
      time_ += delta;
      return *word >= sizeof(*word) && Skip(*word - sizeof(*word));
    default:
      time_ += delta;
      return *word > sizeof(*word) && TakeData(*word - sizeof(*word), event);
  }
}

std::optional<PageEvent> Page::Next() {
  PageEvent event;
  while (!data_.empty()) {
    if (!Step(event)) {
      End(true);
    } else if (!event.record.empty()) {
      return event;
    }
  }
  return std::nullopt;
}

}  // namespace probed::kernel
