// Attaching, again and again, to processes that will not sit still.

#include <iostream>

#include "elf/module_map.h"
#include "engine/sys/proc.h"
#include "engine/sys/process_memory.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

// Every byte of the program's executable mappings.
std::vector<std::byte> TextOf(pid_t pid) {
  std::vector<std::byte> text;
  auto memory = sys::ProcessMemory::Open(pid);
  auto mappings = elf::ParseMaps(sys::ReadMaps(pid).value_or(""));
  if (!memory.ok() || !mappings.ok()) return text;
  for (const elf::Mapping& mapping : *mappings) {
    if (!mapping.executable || mapping.path == "[vsyscall]") continue;
    size_t start = text.size();
    text.resize(start + (mapping.end - mapping.start));
    size_t size = memory->ReadSome(mapping.start, std::span(text).subspan(start));
    text.resize(start + size);
  }
  return text;
}

TEST_F(TracerTest, ManyAttachDetachCyclesOnABusyProgram) {
  Puppet puppet("counter", {"8", "0"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  puppet.Send();
  std::vector<std::byte> text = TextOf(puppet.pid());
  ASSERT_FALSE(text.empty());
  std::string maps = *sys::ReadMaps(puppet.pid());
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(Attach(puppet.pid()), "") << i;
    uint64_t hits = observer_.hits();
    Insert(puppet.pid(), nop);
    ASSERT_TRUE(Eventually([&] { return observer_.hits() > hits + 10; })) << i;
    ASSERT_EQ(Detach(puppet.pid()), "") << i;
    ASSERT_TRUE(IsUntraced(puppet.pid()));
  }
  EXPECT_EQ(TextOf(puppet.pid()), text);
  EXPECT_EQ(*sys::ReadMaps(puppet.pid()), maps);
  puppet.Send();
  EXPECT_GE(puppet.ReadNumber("calls"), observer_.hits());
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(TracerTest, ManyAttachDetachCyclesOnThreadChurn) {
  Puppet puppet("churn", {"4"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Attach(puppet.pid()), "") << i;
    uint64_t hits = observer_.hits();
    Insert(puppet.pid(), nop);
    ASSERT_TRUE(Eventually([&] { return observer_.hits() > hits + 10; })) << i;
    ASSERT_EQ(Detach(puppet.pid()), "") << i;
  }
  puppet.CloseInput();
  EXPECT_GE(puppet.ReadNumber("calls"), observer_.hits());
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(TracerTest, NoThreadSlipsThroughAnAttachToChurn) {
  Puppet puppet("churn", {"8"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  ASSERT_EQ(Attach(puppet.pid()), "");
  Insert(puppet.pid(), nop);
  ASSERT_TRUE(Eventually([&] { return observer_.hits() > 2000; }));
  // Untraced threads would die of the int3; each traced one hits it once.
  puppet.CloseInput();
  uint64_t calls = puppet.ReadNumber("calls");
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_GE(calls, observer_.hits());
}

TEST_F(TracerTest, AttachToAThousandThreads) {
  Puppet puppet("counter", {"1000", "1"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(Attach(puppet.pid()), "");
  auto attached = std::chrono::steady_clock::now();
  uint64_t max_ns = 0, one_ns = 0;
  size_t stopped = 0;
  tracer_->Call([&] {
    Process* process = tracer_->Find(puppet.pid());
    EXPECT_EQ(process->threads().size(), 1001u);
    EXPECT_EQ(process->max_stop_ns(), 0u) << "a seize stops nothing";
    auto insert = [&](Stopped& one) { return observer_.Insert(one, nop); };
    EXPECT_TRUE(tracer_->WithOneStopped(*process, std::chrono::seconds(5), insert).ok());
    one_ns = process->max_stop_ns();
    auto count = [&](std::vector<Stopped*>& all) -> Status {
      stopped = all.size();
      return {};
    };
    EXPECT_TRUE(tracer_->WithAllStopped(*process, std::chrono::seconds(5), count).ok());
    max_ns = process->max_stop_ns();
  });
  EXPECT_EQ(stopped, 1001u);
  std::cout << "seize of 1001 threads: "
            << std::chrono::duration<double, std::milli>(attached - start).count()
            << " ms, none stopped; write to memory: one thread stopped " << one_ns / 1e6
            << " ms; all stopped: longest " << max_ns / 1e6 << " ms\n";
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("calls"), 1000u);
  EXPECT_EQ(observer_.hits(), 1000u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

}  // namespace
}  // namespace probed::tracee
