// What the `trace` file shows of definitions of kernel code and of events. That it is what a kernel
// shows is tested in tests/kernel, on one that has them.

#include <gtest/gtest.h>

#include <cstring>

#include "engine/kernel/event_decoder.h"

namespace probed::kernel {
namespace {

constexpr char kKallsyms[] =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000100 T vfs_read\n"
    "ffffffff81000300 t ksys_read\n"
    "ffffffff81000400 T _end\n";
constexpr char kModule[] = "ffffffffc0000000 t dummy_xmit\t[dummy]\n";

constexpr char kHead[] =
    "name: e\nID: 7\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
constexpr char kEntry[] =
    "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:u64 at;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:s32 n;\toffset:24;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"(%lx) at=%pS n=%d\", REC->__probe_ip, (void *)REC->at, REC->n\n";
constexpr char kReturn[] =
    "\tfield:unsigned long __probe_func;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long __probe_ret_ip;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:u32 v;\toffset:24;\tsize:4;\tsigned:0;\n\n"
    "print fmt: \"(%lx <- %lx) v=0x%x\", REC->__probe_func, REC->__probe_ret_ip, REC->v\n";
constexpr char kEvent[] =
    "\tfield:u64 a;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:u64 b;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:u32 c;\toffset:24;\tsize:4;\tsigned:0;\n\n"
    "print fmt: \" a=0x%Lx b=%Lu c=0x%x\", REC->a, REC->b, REC->c\n";

class ProbeTextTest : public ::testing::Test {
 protected:
  std::string Print(const std::string& fields, const EventOrigin& origin, uint64_t first,
                    uint64_t second, uint32_t third) {
    auto decoder = EventDecoder::Create("g", kHead + fields, origin, names_);
    EXPECT_TRUE(decoder.ok());
    std::vector<std::byte> record(28);
    std::memcpy(record.data() + 8, &first, sizeof(first));
    std::memcpy(record.data() + 16, &second, sizeof(second));
    std::memcpy(record.data() + 24, &third, sizeof(third));
    event::RingHit hit;
    EXPECT_TRUE(decoder->Decode(record, 0, hit));
    const lang::FieldSchema& field = hit.schema->fields.back();
    uint32_t slot[2] = {};
    std::memcpy(slot, hit.payload.data() + field.offset, sizeof(slot));
    return {reinterpret_cast<const char*>(hit.payload.data()) + slot[0], slot[1]};
  }

  const EventOrigin kernel_{.kind = EventOrigin::Kind::kKernelCode};
  std::string kallsyms_ = kKallsyms;
  int loads_ = 0;
  std::shared_ptr<PlaceNames> names_ = std::make_shared<PlaceNames>(
      [this] {
        ++loads_;
        return Symbols::Parse(kallsyms_, "");
      },
      [this] { return kallsyms_; });
};

TEST_F(ProbeTextTest, NamesPlacesAndSymbols) {
  EXPECT_EQ(Print(kEntry, kernel_, 0xffffffff81000100, 0xffffffff81000304, -2u),
            "e: (vfs_read+0x0/0x200) at=ksys_read+0x4/0x100 n=-2");
  EXPECT_EQ(Print(kReturn, kernel_, 0xffffffff81000100, 0xffffffff81000320, 16),
            "e: (ksys_read+0x20/0x100 <- vfs_read) v=0x10");
}

TEST_F(ProbeTextTest, NamesTheEventThatIsProbed) {
  const EventOrigin origin{.kind = EventOrigin::Kind::kEvent, .event = "sched.sched_switch"};
  EXPECT_EQ(Print(kEvent, origin, 16, 16, 16), "e: (sched.sched_switch) a=0x10 b=16 c=0x10");
}

TEST_F(ProbeTextTest, ModulesMayComeLater) {
  EXPECT_EQ(Print(kEntry, kernel_, 0xffffffff81000100, 0, 0), "e: (vfs_read+0x0/0x200) at=0x0 n=0");
  kallsyms_ += kModule;
  EXPECT_EQ(Print(kEntry, kernel_, 0xffffffffc0000000, 0xffffffff81000100, 0),
            "e: (dummy_xmit+0x0/0x0 [dummy]) at=vfs_read+0x0/0x200 n=0");
  EXPECT_EQ(loads_, 2);
  for (uint64_t address = 1; address < 100; ++address)
    Print(kEntry, kernel_, 0xffffffffc0000000, address, 0);
  EXPECT_EQ(loads_, 2) << "nothing has changed";
}

}  // namespace
}  // namespace probed::kernel
