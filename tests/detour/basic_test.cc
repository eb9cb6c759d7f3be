// Single hits: what is in the ring afterwards, and that the program notices nothing.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <thread>

#include "engine/lang/fetch_program.h"
#include "tests/detour/installed_detour.h"
#include "tests/detour/programs.h"

namespace probed::detour::testing {
namespace {

using lang::Reg;

// push %rbp; mov %rsp,%rbp; adc %rsi,%rdi; lea (%rdi,%rdx),%rax; pop %rbp; ret
constexpr uint8_t kFunction[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x11, 0xf7,
                                 0x48, 0x8d, 0x04, 0x17, 0x5d, 0xc3};

class DetourBasicTest : public ::testing::Test {
 protected:
  Registers SomeRegisters() const {
    Registers registers;
    for (size_t i = 0; i < registers.general.size(); ++i)
      registers.general[i] = 0x1111'0000'2222'0000 + i;
    registers[Reg::kSp] = stack_.address() + stack_.size() / 2;
    registers.flags = 0x202 | 0x8d5 | 0x400;  // every status flag, and the direction
    return registers;
  }

  DetourProbe Probe(const std::string& arguments, uint32_t index = 0,
                    lang::Dialect dialect = lang::Dialect::kExtended) {
    definitions_.push_back(Define(arguments, dialect));
    DetourProbe probe;
    probe.program = definitions_.back()->program.get();
    probe.limits.kernel_string_rules = dialect == lang::Dialect::kKernel;
    probe.index = index;
    return probe;
  }

  uint64_t Word(const Record& record, size_t index) {
    uint64_t word = 0;
    EXPECT_GE(record.payload.size(), 8 * index + 8);
    std::memcpy(&word, record.payload.data() + 8 * index, sizeof(word));
    return word;
  }

  std::string Text(const Record& record, size_t index) {
    const uint64_t slot = Word(record, index);
    const auto offset = static_cast<uint32_t>(slot);
    const auto length = static_cast<uint32_t>(slot >> 32);
    if (length == 0xffffffff) return "(fault)";
    EXPECT_LE(offset + length, record.payload.size());
    return {reinterpret_cast<const char*>(record.payload.data()) + offset, length};
  }

  Memory memory_;
  Mapping stack_{64 << 10};
  std::vector<std::shared_ptr<const lang::Definition>> definitions_;
};

TEST_F(DetourBasicTest, RecordsRegistersImmediatesStackAndStrings) {
  const char* const text = "Hello world";
  const DetourProbe probe =
      Probe("a=%di:u64 b=\\42:u64 c=$stack:u64 d=+0(%si):string e=$stack1:u64 f=%r15:u64");
  InstalledDetour installed(memory_, {&probe, 1}, kFunction);
  ASSERT_EQ(installed.refusal(), "");

  Registers registers = SomeRegisters();
  registers[Reg::kSi] = reinterpret_cast<uint64_t>(text);
  std::memset(stack_.data() + stack_.size() / 2, 0x77, 64);
  Registers expected = registers;
  RunAt(expected, installed.original());
  const Registers before = registers;
  installed.Run(registers);
  EXPECT_EQ(registers.general, expected.general);
  EXPECT_EQ(registers.flags, expected.flags);

  const auto records = memory_.TakeRecords();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].header.probe, 0u);
  EXPECT_EQ(records[0].header.thread, reinterpret_cast<uint64_t>(__builtin_thread_pointer()));
  EXPECT_EQ(Word(records[0], 0), before[Reg::kDi]);
  EXPECT_EQ(Word(records[0], 1), 42u);
  EXPECT_EQ(Word(records[0], 2), before[Reg::kSp] - 8);
  EXPECT_EQ(Text(records[0], 3), text);
  EXPECT_EQ(Word(records[0], 4), 0x7777777777777777u);
  EXPECT_EQ(Word(records[0], 5), before[Reg::kR15]);
}

// Between the moments when it is measured and when it is copied; of more strings than have room for
// their lengths.
TEST_F(DetourBasicTest, AStringThatGrowsMeanwhileLeavesItsRecord) {
  const DetourProbe probe = Probe(
      "n=%di:u64 a=+0(%si):string b=+0(%si):string c=+0(%si):string d=+0(%si):string "
      "e=+0(%si):string f=+0(%si):string");
  InstalledDetour installed(memory_, {&probe, 1}, kFunction);
  ASSERT_EQ(installed.refusal(), "");
  static std::atomic<char> text[16];
  for (size_t i = 0; i + 1 < std::size(text); ++i)
    text[i] = 'x';
  std::atomic<bool> ended = false;
  std::thread other([&] {
    while (!ended)
      text[9] = text[9] == 'x' ? '\0' : 'x';
  });
  for (int hit = 0; hit < 20'000 && !HasFailure(); ++hit) {
    Registers registers = SomeRegisters();
    registers[Reg::kSi] = reinterpret_cast<uint64_t>(text);
    installed.Run(registers);
    const auto records = memory_.TakeRecords();
    EXPECT_EQ(records.size(), 1u);
    for (size_t field = 1; field <= 6 && !records.empty(); ++field)
      (void)Text(records[0], field);  // is in the record
  }
  ended = true;
  other.join();
}

TEST_F(DetourBasicTest, EveryModeAndTheArmedWord) {
  const DetourProbe probe = Probe("a=%di:u64");
  InstalledDetour installed(memory_, {&probe, 1}, kFunction);
  ASSERT_EQ(installed.refusal(), "");
  const auto hit = [&] {
    Registers registers = SomeRegisters();
    Registers expected = registers;
    RunAt(expected, installed.original());
    installed.Run(registers);
    EXPECT_EQ(registers, expected);
    return memory_.TakeRecords().size();
  };
  EXPECT_EQ(hit(), 1u);
  memory_.SetMode(0, ring::kModeOff);
  EXPECT_EQ(hit(), 0u);
  EXPECT_EQ(memory_.counters(0).counted, 0u);
  memory_.SetMode(0, ring::kModeCount);
  EXPECT_EQ(hit(), 0u);
  EXPECT_EQ(memory_.counters(0).counted, 1u);
  memory_.SetMode(0, ring::kModeRecord);
  memory_.SetArmed(0x40000000);  // FUTEX_OWNER_DIED
  EXPECT_EQ(hit(), 0u);
}

TEST_F(DetourBasicTest, AFullRingCountsLostAndALapIsPadded) {
  Memory memory(4096);
  const DetourProbe probe = Probe("a=%di:u64 b=%si:u64");  // 48 bytes
  InstalledDetour installed(memory, {&probe, 1}, kFunction);
  ASSERT_EQ(installed.refusal(), "");
  for (int i = 0; i < 100; ++i) {
    Registers registers = SomeRegisters();
    installed.Run(registers);
  }
  EXPECT_EQ(memory.TakeRecords().size(), 4096u / 48);
  EXPECT_EQ(memory.counters(0).lost, 100u - 4096 / 48);

  // Laps that end in every word of a record, its header's too.
  uint64_t read = 0;
  for (int i = 0; i < 1000; ++i) {
    Registers registers = SomeRegisters();
    registers[Reg::kDi] = static_cast<uint64_t>(i);
    installed.Run(registers);
    for (const Record& record : memory.TakeRecords()) {
      EXPECT_EQ(Word(record, 0), static_cast<uint64_t>(i));
      ++read;
    }
  }
  EXPECT_EQ(read, 1000u);
}

TEST_F(DetourBasicTest, FaultsLeaveTheirFieldAndGoOn) {
  const DetourProbe probe = Probe("a=+0(%di):u64 b=+0(+0(%di)):string c=%r8:u64 d=+0(%si):string");
  InstalledDetour installed(memory_, {&probe, 1}, kFunction);
  ASSERT_EQ(installed.refusal(), "");
  Registers registers = SomeRegisters();
  registers[Reg::kDi] = 0x10;
  registers[Reg::kSi] = 0x8000'0000'0000'0000;  // not canonical
  const uint64_t before = InstalledDetour::fix_ups();
  installed.Run(registers);
  EXPECT_GT(InstalledDetour::fix_ups(), before);
  const auto records = memory_.TakeRecords();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(Word(records[0], 0), 0u);
  EXPECT_EQ(Text(records[0], 1), "(fault)");
  EXPECT_EQ(Word(records[0], 2), SomeRegisters()[Reg::kR8]);
  EXPECT_EQ(Text(records[0], 3), "(fault)");
}

TEST_F(DetourBasicTest, SeveralProbesRunInOrder) {
  const DetourProbe probes[] = {Probe("a=+0(%si):string", 7), Probe("b=%di:u64", 3), Probe("", 5)};
  InstalledDetour installed(memory_, probes, kFunction);
  ASSERT_EQ(installed.refusal(), "");
  Registers registers = SomeRegisters();
  registers[Reg::kSi] = reinterpret_cast<uint64_t>("x");
  Registers expected = registers;
  RunAt(expected, installed.original());
  installed.Run(registers);
  EXPECT_EQ(registers, expected);
  const auto records = memory_.TakeRecords();
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].header.probe, 7u);
  EXPECT_EQ(records[1].header.probe, 3u);
  EXPECT_EQ(records[2].header.probe, 5u);
  EXPECT_EQ(Text(records[0], 0), "x");
}

TEST_F(DetourBasicTest, SaysWhatOnlyTheDaemonCanFetch) {
  for (const char* const arguments : {"$comm", "a=%xmm0:f64"}) {
    const DetourProbe probe = Probe(arguments);
    InstalledDetour installed(memory_, {&probe, 1}, kFunction);
    EXPECT_NE(installed.refusal().find("DETOUR_UNSUPPORTED"), std::string::npos) << arguments;
  }
}

}  // namespace
}  // namespace probed::detour::testing
