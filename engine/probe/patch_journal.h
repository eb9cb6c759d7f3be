#pragma once
// What of ours is in which process, in memory that outlives the daemon: whoever holds the file can
// put every byte back after it died. Each record is written before what it tells of, and is
// complete once its kind is not kFree. What is read may be out of date, never wrong about what it
// names: whoever undoes it looks at the process's memory first. Tracer thread only, but for
// ReadJournal.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "engine/tracee/call_recorder.h"

namespace probed::probe {

struct JournalRecord {
  enum Kind : uint32_t {
    kFree = 0,
    kSite,        // address, other: the copy, extra: a reference counter, bytes: the instruction
    kPatch,       // address, other: the site, bytes: what the program had there, then what we put
    kTrampoline,  // address
    kHandler,     // address, other: its id (rescue.h)
    kReturn,      // address: the stack slot, other: the real return, extra: grows
    kCall,        // first of all: address, other: where it is made and waits, extra: the signal
                  // mask, unused: the thread; the records behind it: its registers
  };
  static constexpr size_t kMostPatched = 7;

  uint32_t kind = kFree;
  int32_t pid = 0;
  uint64_t start_ticks = 0;  // with the pid, names the process for good
  uint64_t address = 0;
  uint64_t other = 0;
  uint64_t extra = 0;
  uint8_t length = 0;
  std::array<uint8_t, 15> bytes{};
  uint64_t unused = 0;

  std::span<const uint8_t> original() const { return {bytes.data(), length}; }
  std::span<const uint8_t> patched() const { return {bytes.data() + length, length}; }
};
static_assert(sizeof(JournalRecord) == 64);

class PatchJournal final : public tracee::CallRecorder {
 public:
  // `file` is empty and can be sized: a memfd, or a file on a tmpfs.
  static Result<std::shared_ptr<PatchJournal>> Create(int file);
  ~PatchJournal() override;
  PatchJournal(const PatchJournal&) = delete;
  PatchJournal& operator=(const PatchJournal&) = delete;

  // JOURNAL_FULL.
  Result<uint32_t> Add(const JournalRecord& record);
  void Remove(uint32_t index);
  // Its room may be used again, but not at once: until then it stays readable.
  void Retire(uint32_t index) { free_.push_back(index); }
  // No thread of that process is anywhere that its retired records tell of.
  void StrikeOutRetired(pid_t pid, uint64_t start_ticks);
  uint64_t NextNumber() { return ++number_; }

  void Begin(const tracee::CallUnderWay& call) override;
  void End() override;

 private:
  explicit PatchJournal(std::span<JournalRecord> records);
  std::span<JournalRecord> records_;
  uint32_t end_;
  std::deque<uint32_t> free_;  // longest first
  uint64_t number_ = 0;
};

// The record of a hijacked return address, for as long as the frame is known. Stays readable for a
// while after that: the thread may not have been moved on yet.
class ReturnRecord {
 public:
  ReturnRecord() = default;
  ReturnRecord(PatchJournal* journal, uint32_t index) : journal_(journal), index_(index) {}
  ReturnRecord(ReturnRecord&& other) noexcept { *this = std::move(other); }
  ReturnRecord& operator=(ReturnRecord&& other) noexcept {
    std::swap(journal_, other.journal_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~ReturnRecord() {
    if (journal_ != nullptr) journal_->Retire(index_);
  }

 private:
  PatchJournal* journal_ = nullptr;
  uint32_t index_ = 0;
};

// The records of one process; gone with it. Without a journal, nothing is written.
class ProcessJournal {
 public:
  ProcessJournal(std::shared_ptr<PatchJournal> journal, pid_t pid, uint64_t start_ticks)
      : journal_(std::move(journal)), pid_(pid), start_ticks_(start_ticks) {}
  ProcessJournal(const ProcessJournal&) = delete;
  ProcessJournal& operator=(const ProcessJournal&) = delete;
  ~ProcessJournal() { Clear(); }

  bool is_kept() const { return journal_ != nullptr; }
  // In the place of a record of the same kind and address.
  Status Put(JournalRecord record);
  void Remove(JournalRecord::Kind kind, RemoteAddr address);
  // Before the slot is written to.
  Result<ReturnRecord> AddReturn(uint64_t slot, uint64_t real_return);
  // In pieces that a record has room for; removed piece by piece too.
  Status PutPatch(RemoteAddr site, RemoteAddr address, std::span<const uint8_t> original,
                  std::span<const uint8_t> patched);
  void RemovePatch(RemoteAddr address, size_t size);
  // For a copy of the process's memory.
  Status CopyFrom(const ProcessJournal& parent);
  void Clear();
  // Of a process whose memory is a copy of this one's.
  std::vector<JournalRecord> Records() const;

 private:
  struct Entry {
    uint32_t index = 0;
    JournalRecord record;
  };
  std::shared_ptr<PatchJournal> journal_;
  pid_t pid_;
  uint64_t start_ticks_;
  bool had_returns_ = false;
  std::map<std::pair<uint32_t, uint64_t>, Entry> entries_;  // by kind and address
};

// All that stands in a journal whose writer is dead, a process each.
struct JournaledProcess {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  std::vector<JournalRecord> records;
  std::optional<tracee::CallUnderWay> call;
};
Result<std::vector<JournaledProcess>> ReadJournal(int file);
// The process has been dealt with.
Status StrikeOut(int file, const JournaledProcess& process);

}  // namespace probed::probe
