#include "engine/probe/patch_journal.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/unique_fd.h"

namespace probed::probe {
namespace {

using Kind = JournalRecord::Kind;

class PatchJournalTest : public testing::Test {
 protected:
  PatchJournalTest() : file_(::memfd_create("journal", MFD_CLOEXEC)) {
    auto made = PatchJournal::Create(file_.get());
    EXPECT_TRUE(made.ok());
    if (made.ok()) journal_ = *made;
  }
  // As somebody else sees it, who has the file only.
  std::vector<JournaledProcess> Read() {
    auto read = ReadJournal(file_.get());
    EXPECT_TRUE(read.ok());
    return read.ok() ? *read : std::vector<JournaledProcess>{};
  }
  static JournalRecord Site(uint64_t address) {
    return {.kind = Kind::kSite, .address = address, .length = 1, .bytes = {0x55}};
  }

  UniqueFd file_;
  std::shared_ptr<PatchJournal> journal_;
};

TEST_F(PatchJournalTest, NothingIsReadFromAnEmptyOne) {
  EXPECT_TRUE(Read().empty());
}

TEST_F(PatchJournalTest, RecordsOfProcessesAreKeptApartAndGoWithThem) {
  ProcessJournal first(journal_, 10, 1000);
  ASSERT_TRUE(first.Put(Site(0x1000)).ok());
  {
    ProcessJournal reused_pid(journal_, 10, 2000);
    ASSERT_TRUE(reused_pid.CopyFrom(first).ok());
    ASSERT_TRUE(reused_pid.Put(Site(0x2000)).ok());
    auto read = Read();
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[0].records.size(), 1u);
    EXPECT_EQ(read[1].start_ticks, 2000u);
    EXPECT_EQ(read[1].records.size(), 2u);
  }
  auto read = Read();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].start_ticks, 1000u);
  EXPECT_EQ(read[0].records[0].address, 0x1000u);
}

TEST_F(PatchJournalTest, ACallUnderWayIsReadWithItsRegistersUntilItEnds) {
  ProcessJournal process(journal_, 10, 1000);
  ASSERT_TRUE(process.Put(Site(0x1000)).ok());
  tracee::CallUnderWay call{
      .pid = 10,
      .start_ticks = 1000,
      .tid = 12,
      .place = {.instruction = RemoteAddr{0x2000}, .parking = RemoteAddr{0x3000}},
      .signal_mask = 0x55};
  call.regs.r15 = 1;  // first and last of the structure
  call.regs.gs = 2;
  journal_->Begin(call);
  auto read = Read();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].records.size(), 1u) << "registers are no records";
  ASSERT_TRUE(read[0].call);
  EXPECT_EQ(read[0].call->tid, 12);
  EXPECT_TRUE(read[0].call->place.Holds(RemoteAddr{0x2002}));
  EXPECT_TRUE(read[0].call->place.Holds(RemoteAddr{0x3000}));
  EXPECT_EQ(read[0].call->signal_mask, 0x55u);
  EXPECT_EQ(read[0].call->regs.r15, 1u);
  EXPECT_EQ(read[0].call->regs.gs, 2u);
  ASSERT_TRUE(StrikeOut(file_.get(), read[0]).ok());
  EXPECT_TRUE(Read().empty());
  journal_->Begin(call);
  journal_->End();
  EXPECT_TRUE(Read().empty());
}

TEST_F(PatchJournalTest, ARecordReplacesTheOneOfTheSamePlace) {
  ProcessJournal process(journal_, 10, 1000);
  ASSERT_TRUE(process.Put(Site(0x1000)).ok());
  JournalRecord with_counter = Site(0x1000);
  with_counter.extra = 0x5000;
  ASSERT_TRUE(process.Put(with_counter).ok());
  auto read = Read();
  ASSERT_EQ(read.size(), 1u);
  ASSERT_EQ(read[0].records.size(), 1u);
  EXPECT_EQ(read[0].records[0].extra, 0x5000u);
  process.Remove(Kind::kSite, RemoteAddr{0x1000});
  EXPECT_TRUE(Read().empty());
}

TEST_F(PatchJournalTest, LongPatchesAreCutAndRemovedWhole) {
  ProcessJournal process(journal_, 10, 1000);
  std::vector<uint8_t> original(10, 0x90), patched(10, 0xe9);
  ASSERT_TRUE(process.PutPatch(RemoteAddr{0x1000}, RemoteAddr{0x1000}, original, patched).ok());
  auto read = Read();
  ASSERT_EQ(read.size(), 1u);
  std::vector<uint8_t> restored;
  for (const JournalRecord& record : read[0].records) {
    EXPECT_EQ(record.address, 0x1000 + restored.size());
    restored.insert(restored.end(), record.original().begin(), record.original().end());
    EXPECT_EQ(record.patched()[0], 0xe9);
  }
  EXPECT_EQ(restored, original);
  process.RemovePatch(RemoteAddr{0x1000}, original.size());
  EXPECT_TRUE(Read().empty());
}

TEST_F(PatchJournalTest, StruckOutIsGone) {
  ProcessJournal first(journal_, 10, 1000), second(journal_, 11, 1000);
  ASSERT_TRUE(first.Put(Site(0x1000)).ok());
  ASSERT_TRUE(second.Put(Site(0x1000)).ok());
  ASSERT_TRUE(StrikeOut(file_.get(), Read()[0]).ok());
  auto read = Read();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].pid, 11);
}

TEST_F(PatchJournalTest, GarbageIsPassedOver) {
  ProcessJournal process(journal_, 10, 1000);
  JournalRecord too_long = Site(0x1000);
  too_long.length = 200;
  ASSERT_TRUE(process.Put(too_long).ok());
  JournalRecord unknown = Site(0x2000);
  unknown.kind = 77;
  ASSERT_TRUE(process.Put(unknown).ok());
  EXPECT_TRUE(Read().empty());
}

TEST_F(PatchJournalTest, ReturnsStayReadableForAWhileAndTheLastWrittenIsKnown) {
  ProcessJournal process(journal_, 10, 1000);
  {
    auto first = process.AddReturn(0x7000, 0x1111);
    ASSERT_TRUE(first.ok());
  }
  auto second = process.AddReturn(0x7000, 0x2222);
  ASSERT_TRUE(second.ok());
  auto read = Read();
  ASSERT_EQ(read.size(), 1u);
  ASSERT_EQ(read[0].records.size(), 2u);
  const JournalRecord& ended = read[0].records[0];
  const JournalRecord& living = read[0].records[1];
  EXPECT_EQ(ended.other, 0x1111u);
  EXPECT_EQ(living.other, 0x2222u);
  EXPECT_LT(ended.extra, living.extra);
}

TEST_F(PatchJournalTest, RoomOfReturnsIsUsedAgain) {
  ProcessJournal process(journal_, 10, 1000);
  for (uint64_t i = 0; i < 10'000; ++i)
    ASSERT_TRUE(process.AddReturn(0x7000, i).ok());
  EXPECT_LT(Read()[0].records.size(), 100u);
}

}  // namespace
}  // namespace probed::probe
