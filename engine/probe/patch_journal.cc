#include "engine/probe/patch_journal.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

namespace probed::probe {
namespace {

// Sparse: only what is used takes up memory.
constexpr size_t kMostRecords = size_t{1} << 21;
constexpr size_t kMostBytes = kMostRecords * sizeof(JournalRecord);
// More than there can be threads between the end of a frame and the resumption: one, in fact.
constexpr size_t kLeastRetired = 64;

// The call under way and its registers have a place of their own, before all others.
constexpr size_t kCallRecords =
    1 + (sizeof(user_regs_struct) + sizeof(JournalRecord) - 1) / sizeof(JournalRecord);

using Records = std::span<JournalRecord>;

Result<Records> Map(int file, size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return ErrnoError(errno, "mmap of the patch journal");
  return Records(static_cast<JournalRecord*>(memory), size / sizeof(JournalRecord));
}

void Unmap(Records records) {
  ::munmap(records.data(), records.size_bytes());
}

// Until its last write a record is none: the writer may die at any instruction.
void SetKind(JournalRecord& record, uint32_t kind) {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // its reader starts when we are dead
  std::atomic_ref(record.kind).store(kind, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

Result<std::shared_ptr<PatchJournal>> PatchJournal::Create(int file) {
  if (::ftruncate(file, static_cast<off_t>(kMostBytes)) != 0) {
    return ErrnoError(errno, "size of the patch journal");
  }
  PROBED_TRY(Records records, Map(file, kMostBytes));
  return std::shared_ptr<PatchJournal>(new PatchJournal(records));
}

PatchJournal::PatchJournal(Records records) : records_(records), end_(kCallRecords) {}

PatchJournal::~PatchJournal() {
  Unmap(records_);
}

Result<uint32_t> PatchJournal::Add(const JournalRecord& record) {
  if (free_.empty() && end_ == records_.size()) {
    return Error{.code = ErrorCode::kResourceExhausted,
                 .reason = "JOURNAL_FULL",
                 .message = "the journal of patches has no room for more",
                 .hint = "delete probes, or detach from targets",
                 .metadata = {}};
  }
  uint32_t index = end_;
  if (free_.size() <= kLeastRetired && end_ < records_.size()) {
    ++end_;
  } else {
    index = free_.front();
    free_.pop_front();
  }
  JournalRecord& place = records_[index];
  SetKind(place, JournalRecord::kFree);
  constexpr size_t kBehindKind = sizeof record.kind;
  std::memcpy(reinterpret_cast<std::byte*>(&place) + kBehindKind,
              reinterpret_cast<const std::byte*>(&record) + kBehindKind,
              sizeof record - kBehindKind);
  SetKind(place, record.kind);
  return index;
}

void PatchJournal::Remove(uint32_t index) {
  SetKind(records_[index], JournalRecord::kFree);
  free_.push_back(index);
}

void PatchJournal::StrikeOutRetired(pid_t pid, uint64_t start_ticks) {
  for (uint32_t index : free_) {
    JournalRecord& record = records_[index];
    if (record.pid == pid && record.start_ticks == start_ticks)
      SetKind(record, JournalRecord::kFree);
  }
}

void PatchJournal::Begin(const tracee::CallUnderWay& call) {
  JournalRecord& record = records_.front();
  SetKind(record, JournalRecord::kFree);
  std::memcpy(std::as_writable_bytes(records_.subspan(1)).data(), &call.regs, sizeof call.regs);
  record.pid = call.pid;
  record.start_ticks = call.start_ticks;
  record.address = call.place.instruction.value;
  record.other = call.place.parking.value;
  record.extra = call.signal_mask;
  record.length = 0;
  record.unused = static_cast<uint64_t>(call.tid);
  SetKind(record, JournalRecord::kCall);
}

void PatchJournal::End() {
  SetKind(records_.front(), JournalRecord::kFree);
}

// The old record goes last: at every moment there is one.
Status ProcessJournal::Put(JournalRecord record) {
  if (!journal_) return {};
  record.pid = pid_;
  record.start_ticks = start_ticks_;
  PROBED_TRY(uint32_t index, journal_->Add(record));
  auto [place, is_new] = entries_.try_emplace({record.kind, record.address});
  if (!is_new) journal_->Remove(place->second.index);
  place->second = {.index = index, .record = record};
  return {};
}

void ProcessJournal::Remove(JournalRecord::Kind kind, RemoteAddr address) {
  auto found = entries_.find({kind, address.value});
  if (found == entries_.end()) return;
  journal_->Remove(found->second.index);
  entries_.erase(found);
}

Result<ReturnRecord> ProcessJournal::AddReturn(uint64_t slot, uint64_t real_return) {
  if (!journal_) return ReturnRecord();
  JournalRecord record{.kind = JournalRecord::kReturn,
                       .pid = pid_,
                       .start_ticks = start_ticks_,
                       .address = slot,
                       .other = real_return,
                       .extra = journal_->NextNumber()};
  PROBED_TRY(uint32_t index, journal_->Add(record));
  had_returns_ = true;
  return ReturnRecord(journal_.get(), index);
}

Status ProcessJournal::PutPatch(RemoteAddr site, RemoteAddr address,
                                std::span<const uint8_t> original,
                                std::span<const uint8_t> patched) {
  for (size_t done = 0; done < original.size(); done += JournalRecord::kMostPatched) {
    size_t length = std::min(original.size() - done, JournalRecord::kMostPatched);
    JournalRecord record{.kind = JournalRecord::kPatch,
                         .address = address.value + done,
                         .other = site.value,
                         .length = static_cast<uint8_t>(length)};
    auto behind =
        std::copy_n(original.begin() + static_cast<ptrdiff_t>(done), length, record.bytes.begin());
    std::copy_n(patched.begin() + static_cast<ptrdiff_t>(done), length, behind);
    PROBED_RETURN_IF_ERROR(Put(record));
  }
  return {};
}

void ProcessJournal::RemovePatch(RemoteAddr address, size_t size) {
  for (size_t done = 0; done < size; done += JournalRecord::kMostPatched)
    Remove(JournalRecord::kPatch, address + done);
}

Status ProcessJournal::CopyFrom(const ProcessJournal& parent) {
  for (const auto& [key, entry] : parent.entries_)
    PROBED_RETURN_IF_ERROR(Put(entry.record));
  return {};
}

std::vector<JournalRecord> ProcessJournal::Records() const {
  std::vector<JournalRecord> records;
  for (const auto& [key, entry] : entries_)
    records.push_back(entry.record);
  return records;
}

void ProcessJournal::Clear() {
  for (const auto& [key, entry] : entries_)
    journal_->Remove(entry.index);
  entries_.clear();
  if (had_returns_) journal_->StrikeOutRetired(pid_, start_ticks_);
}

namespace {

Result<Records> MapExisting(int file) {
  off_t size = ::lseek(file, 0, SEEK_END);
  if (size < 0) return ErrnoError(errno, "size of the patch journal");
  size_t bytes = std::min(static_cast<size_t>(size), kMostBytes);
  bytes -= bytes % sizeof(JournalRecord);
  if (bytes == 0) return Records();
  return Map(file, bytes);
}

// The last record that may be in use: behind it the file has never been written to.
size_t EndOf(int file, size_t records) {
  off_t end = 0;
  for (off_t at = 0; (at = ::lseek(file, at, SEEK_DATA)) >= 0;) {
    at = ::lseek(file, at, SEEK_HOLE);
    if (at <= end) break;
    end = at;
  }
  return std::min(records, static_cast<size_t>(end) / sizeof(JournalRecord));
}

std::optional<tracee::CallUnderWay> CallIn(Records records) {
  if (records.size() < kCallRecords || records.front().kind != JournalRecord::kCall) return {};
  const JournalRecord& record = records.front();
  tracee::CallUnderWay call{
      .pid = record.pid,
      .start_ticks = record.start_ticks,
      .tid = static_cast<pid_t>(record.unused),
      .place = {.instruction = RemoteAddr{record.address}, .parking = RemoteAddr{record.other}},
      .signal_mask = record.extra};
  std::memcpy(&call.regs, &records[1], sizeof call.regs);
  return call;
}

// Those that are one by one for themselves.
Records Singles(Records records, size_t end) {
  size_t start = std::min(kCallRecords, end);
  return records.subspan(start, end - start);
}

bool IsSound(const JournalRecord& record) {
  size_t used = record.kind == JournalRecord::kPatch ? size_t{2} * record.length : record.length;
  return record.kind <= JournalRecord::kReturn && used <= record.bytes.size();
}

}  // namespace

Result<std::vector<JournaledProcess>> ReadJournal(int file) {
  PROBED_TRY(Records records, MapExisting(file));
  std::map<std::pair<pid_t, uint64_t>, JournaledProcess> processes;
  auto process_of = [&](const JournalRecord& record) -> JournaledProcess& {
    JournaledProcess& process = processes[{record.pid, record.start_ticks}];
    process.pid = record.pid;
    process.start_ticks = record.start_ticks;
    return process;
  };
  for (const JournalRecord& record : Singles(records, EndOf(file, records.size()))) {
    if (record.kind == JournalRecord::kFree || !IsSound(record)) continue;
    process_of(record).records.push_back(record);
  }
  if (auto call = CallIn(records)) process_of(records.front()).call = call;
  if (!records.empty()) Unmap(records);
  std::vector<JournaledProcess> list;
  for (auto& [id, process] : processes)
    list.push_back(std::move(process));
  return list;
}

Status StrikeOut(int file, const JournaledProcess& process) {
  PROBED_TRY(Records records, MapExisting(file));
  auto strike_out = [&](JournalRecord& record) {
    bool is_its = record.pid == process.pid && record.start_ticks == process.start_ticks;
    if (is_its) SetKind(record, JournalRecord::kFree);
  };
  if (!records.empty()) strike_out(records.front());
  for (JournalRecord& record : Singles(records, EndOf(file, records.size())))
    strike_out(record);
  if (!records.empty()) Unmap(records);
  return {};
}

}  // namespace probed::probe
