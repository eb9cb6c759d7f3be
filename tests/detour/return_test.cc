// Hijacked returns: what is recorded, and that the program goes on as if nothing had happened.

#include <signal.h>
#include <sys/user.h>
#include <ucontext.h>

#include <cstring>
#include <memory>

#include "engine/detour/leave.h"
#include "engine/detour/trampoline.h"
#include "engine/lang/fetch_program.h"
#include "tests/detour/programs.h"
#include "tests/detour/random_hit.h"

namespace probed::detour::testing {
namespace {

using lang::Reg;

// add %rsi,%rdi; lea 1(%rdi),%rax; sbb %rdx,%rdx; ret
constexpr uint8_t kAdder[] = {0x48, 0x01, 0xf7, 0x48, 0x8d, 0x47, 0x01, 0x48, 0x19, 0xd2, 0xc3};

constexpr uint64_t kDaemonTrampoline = 0x7fffdeadb000;

class SelfBus : public arch::MemoryBus {
 public:
  bool Load(uint64_t address, std::span<std::byte> out) override {
    std::memcpy(out.data(), reinterpret_cast<const void*>(address), out.size());
    return true;
  }
  bool Store(uint64_t, std::span<const std::byte>) override { return false; }
};

constexpr std::pair<int, unsigned long long user_regs_struct::*> kRegisters[] = {
    {REG_RAX, &user_regs_struct::rax},    {REG_RBX, &user_regs_struct::rbx},
    {REG_RCX, &user_regs_struct::rcx},    {REG_RDX, &user_regs_struct::rdx},
    {REG_RSI, &user_regs_struct::rsi},    {REG_RDI, &user_regs_struct::rdi},
    {REG_RBP, &user_regs_struct::rbp},    {REG_RSP, &user_regs_struct::rsp},
    {REG_R8, &user_regs_struct::r8},      {REG_R9, &user_regs_struct::r9},
    {REG_R10, &user_regs_struct::r10},    {REG_R11, &user_regs_struct::r11},
    {REG_R12, &user_regs_struct::r12},    {REG_R13, &user_regs_struct::r13},
    {REG_R14, &user_regs_struct::r14},    {REG_R15, &user_regs_struct::r15},
    {REG_EFL, &user_regs_struct::eflags}, {REG_RIP, &user_regs_struct::rip}};

// What the daemon does when it is asked, without its frames: the thread goes on with the program's
// registers at `go_on`, or where r15 says.
struct Asked {
  const Detour* detour = nullptr;
  uint64_t buffer = 0;
  uint64_t go_on = 0;
  int times = 0;
};
Asked asked;

void OnAsk(int, siginfo_t*, void* context) {
  auto& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  user_regs_struct regs{};
  for (const auto& [index, member] : kRegisters)
    regs.*member = static_cast<uint64_t>(machine.gregs[index]);
  if (regs.rip != asked.buffer + asked.detour->ask + 1) std::abort();
  --regs.rip;
  SelfBus bus;
  if (!Unwind(*asked.detour, asked.buffer, 0, regs, bus)) std::abort();
  regs.rip = asked.go_on != 0 ? asked.go_on : regs.r15;
  for (const auto& [index, member] : kRegisters)
    machine.gregs[index] = static_cast<greg_t>(regs.*member);
  ++asked.times;
}

class AskScope {
 public:
  AskScope(const Detour& detour, uint64_t buffer, uint64_t go_on) {
    asked = {.detour = &detour, .buffer = buffer, .go_on = go_on, .times = 0};
    struct sigaction action {};
    action.sa_sigaction = OnAsk;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGTRAP, &action, nullptr);
  }
  ~AskScope() { ::signal(SIGTRAP, SIG_DFL); }
  AskScope(const AskScope&) = delete;
  AskScope& operator=(const AskScope&) = delete;
};

class ReturnContext : public lang::testing::SelfContext {
 public:
  std::vector<uint64_t> captured;
  std::span<const uint64_t> entry_arguments() const override { return captured; }
};

// A function with return probes on it.
class InstalledReturn {
 public:
  InstalledReturn(Memory& memory, std::span<const DetourProbe> probes,
                  std::span<const uint8_t> function, uint32_t arguments = 0) {
    for (const DetourProbe& probe : probes) {
      indexes_.push_back(probe.index);
      memory.SetMode(probe.index, ring::kModeRecord);
    }
    site_.emplace(memory, std::span<const DetourProbe>(), function, HasRdpid(),
                  Hijack{code_.address(), indexes_, arguments, kDaemonTrampoline});
    auto trampoline = AssembleTrampoline(
        {.function = site_->site(), .probes = probes, .memory = memory.shared()});
    if (!trampoline.ok()) {
      refusal_ = trampoline.error().ToString();
      return;
    }
    trampoline_ = *std::move(trampoline);
    std::memcpy(code_.data(), trampoline_.code.data(), trampoline_.code.size());
    faults_.emplace(trampoline_, code_.address());
  }

  const std::string& refusal() const { return refusal_; }
  const InstalledDetour& site() const { return *site_; }
  const Detour& trampoline() const { return trampoline_; }
  uint64_t address() const { return code_.address(); }

 private:
  Mapping code_{1 << 20, PROT_EXEC};
  std::vector<uint32_t> indexes_;
  std::optional<InstalledDetour> site_;
  Detour trampoline_;
  std::string refusal_;
  std::optional<FaultScope> faults_;
};

class ReturnTest : public RandomHit, public ::testing::WithParamInterface<int> {
 protected:
  ReturnTest() : RandomHit(static_cast<uint64_t>(GetParam()) + 2000) { ring_.SetThreadKnown(true); }

  DetourProbe Probe(const std::string& arguments, uint32_t index = 0) {
    definitions_.push_back(Define(arguments, lang::Dialect::kExtended, lang::ProbeKind::kReturn));
    return {.program = definitions_.back()->program.get(), .limits = {}, .index = index};
  }

  static uint64_t Word(const Record& record, size_t index) {
    uint64_t word = 0;
    EXPECT_GE(record.payload.size(), 8 * index + 8);
    std::memcpy(&word, record.payload.data() + 8 * index, sizeof(word));
    return word;
  }

  // Runs the function with and without its probes; the registers afterwards must be the same.
  Registers Run(const InstalledReturn& installed, const Registers& before) {
    Registers expected = before;
    RunAt(expected, installed.site().original());
    Registers registers = before;
    installed.site().Run(registers);
    EXPECT_EQ(registers, expected);
    return registers;
  }

  uint64_t SlotOf(const Registers& registers) { return registers[Reg::kSp] - 8; }
  uint64_t WordAt(uint64_t address) { return *reinterpret_cast<const uint64_t*>(address); }

  std::vector<std::shared_ptr<const lang::Definition>> definitions_;
};

TEST_P(ReturnTest, RecordsTheCallerTheValueAndTheArguments) {
  const DetourProbe probes[] = {Probe("r=$retval:u64 a=$arg1:u64 b=$arg2:u64", 0),
                                Probe("s=%sp:u64", 1)};
  InstalledReturn installed(ring_, probes, kAdder, 2);
  ASSERT_EQ(installed.refusal(), "");
  const Registers before = SomeRegisters();
  const Registers after = Run(installed, before);
  EXPECT_EQ(ring_.shadow_stack().depth, 0u);
  const auto records = ring_.TakeRecords();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(Word(records[0], 0), WordAt(SlotOf(before)));
  EXPECT_EQ(Word(records[0], 1), after[Reg::kAx]);
  EXPECT_EQ(Word(records[0], 2), before[Reg::kDi]);
  EXPECT_EQ(Word(records[0], 3), before[Reg::kSi]);
  EXPECT_EQ(Word(records[1], 0), WordAt(SlotOf(before)));
  EXPECT_EQ(Word(records[1], 1), before[Reg::kSp]);
}

TEST_P(ReturnTest, AsksWithoutAShadowStackOrRoomInIt) {
  const DetourProbe probe = Probe("r=$retval:u64");
  InstalledReturn installed(ring_, {&probe, 1}, kAdder);
  const Detour& entry = installed.site().detour();
  AskScope scope(entry, installed.site().buffer(), installed.site().buffer() + entry.displaced);
  ring_.SetThreadKnown(false);
  Run(installed, SomeRegisters());
  EXPECT_EQ(asked.times, 1);
  ring_.SetThreadKnown(true);
  // Frames of an outer stack, alive as far as anyone can tell.
  ring_.shadow_stack().depth = ring::kShadowFrames;
  for (auto& frame : ring_.shadow_stack().frames)
    frame.slot = ~uint64_t{0} - 7;
  Run(installed, SomeRegisters());
  EXPECT_EQ(asked.times, 2);
  ring_.shadow_stack().depth = 0;
  EXPECT_EQ(ring_.counters(0).unwound, 0u);
  EXPECT_EQ(ring_.TakeRecords().size(), 0u);
}

TEST_P(ReturnTest, TakesDeadFramesOffAndCountsThem) {
  const DetourProbe probe = Probe("r=$retval:u64");
  InstalledReturn installed(ring_, {&probe, 1}, kAdder);
  const Registers before = SomeRegisters();
  ring::ShadowStack& shadow = ring_.shadow_stack();
  // One that longjmp left: its slot is overwritten. One whose stack is gone altogether.
  const uint64_t overwritten = SlotOf(before) - 64;
  shadow.frames[0] = {.slot = overwritten, .trampoline = 1, .probe = 5};
  shadow.frames[1] = {.slot = 0x10, .trampoline = 1, .probe = 6};
  shadow.frames[2] = {.slot = 0, .trampoline = 1, .probe = 7};  // a gap
  shadow.depth = 3;
  Run(installed, before);
  EXPECT_EQ(shadow.depth, 0u);
  EXPECT_EQ(ring_.counters(5).unwound, 1u);
  EXPECT_EQ(ring_.counters(6).unwound, 1u);
  EXPECT_EQ(ring_.counters(7).unwound, 0u);
  EXPECT_EQ(ring_.TakeRecords().size(), 1u);
}

TEST_P(ReturnTest, KeepsFramesOfOtherStacks) {
  const DetourProbe probe = Probe("r=$retval:u64");
  InstalledReturn installed(ring_, {&probe, 1}, kAdder);
  const Registers before = SomeRegisters();
  // Below this stack, but its slot still holds a trampoline: a coroutine's.
  uint64_t other = 77;
  ring::ShadowStack& shadow = ring_.shadow_stack();
  const auto other_slot = reinterpret_cast<uint64_t>(&other);
  shadow.frames[0] = {.slot = other_slot, .trampoline = 77};
  shadow.depth = 1;
  Run(installed, before);
  ASSERT_EQ(shadow.depth, 1u);
  EXPECT_EQ(shadow.frames[0].slot, other_slot);
  EXPECT_EQ(ring_.TakeRecords().size(), 1u);
}

// jmp to another probed function: both return through one slot.
TEST_P(ReturnTest, ChainsTailCalls) {
  const DetourProbe inner_probe = Probe("r=$retval:u64", 0);
  const DetourProbe outer_probe = Probe("r=$retval:u64", 1);
  InstalledReturn inner(ring_, {&inner_probe, 1}, kAdder);
  // lea 2(%rsi),%rsi; mov $address,%rax; jmp *%rax
  std::vector<uint8_t> code = {0x48, 0x8d, 0x76, 0x02, 0x90, 0x48, 0xb8};
  const uint64_t target = inner.site().site();
  const auto* bytes = reinterpret_cast<const uint8_t*>(&target);
  code.insert(code.end(), bytes, bytes + 8);
  code.insert(code.end(), {0xff, 0xe0});
  InstalledReturn outer(ring_, {&outer_probe, 1}, code);
  Registers registers = SomeRegisters();
  const uint64_t slot = SlotOf(registers);
  const Registers before = registers;
  outer.site().Run(registers);
  const uint64_t value = before[Reg::kDi] + before[Reg::kSi] + 2 + 1;
  EXPECT_EQ(registers[Reg::kAx], value);
  EXPECT_EQ(ring_.shadow_stack().depth, 0u);
  const auto records = ring_.TakeRecords();
  ASSERT_EQ(records.size(), 2u);
  for (const Record& record : records) {
    EXPECT_EQ(Word(record, 0), WordAt(slot));
    EXPECT_EQ(Word(record, 1), value);
  }
  EXPECT_EQ(records[0].header.probe, 0u);
  EXPECT_EQ(records[1].header.probe, 1u);
}

TEST_P(ReturnTest, ReturnsWhenTheDaemonIsDead) {
  const DetourProbe probe = Probe("r=$retval:u64");
  // add $1,%rdi; nop; movl $FUTEX_OWNER_DIED,(%r14); ret
  const uint8_t function[] = {0x48, 0x83, 0xc7, 0x01, 0x90, 0x41, 0xc7, 0x06, 0, 0, 0, 0x40, 0xc3};
  InstalledReturn installed(ring_, {&probe, 1}, function);
  Registers before = SomeRegisters();
  before[Reg::kR14] = ring_.shared().control + offsetof(ring::ControlHeader, armed);
  Registers registers = before;
  installed.site().Run(registers);  // dies during the call
  EXPECT_EQ(registers[Reg::kDi], before[Reg::kDi] + 1);
  installed.site().Run(registers);  // is dead already
  EXPECT_EQ(registers[Reg::kDi], before[Reg::kDi] + 2);
  EXPECT_EQ(ring_.shadow_stack().depth, 0u);
  EXPECT_EQ(ring_.TakeRecords().size(), 0u);
}

// The same values as the interpreter has, for any program at a return.
TEST_P(ReturnTest, RandomPrograms) {
  ProgramGenerator generator(memory_);
  uint64_t compared = 0;
  for (int round = 0; round < 200; ++round) {
    const lang::FetchProgram program = generator.Next();
    const DetourProbe probe{
        .program = &program, .limits = SomeLimits(), .file_base = kFileBase, .index = 0};
    InstalledReturn installed(ring_, {&probe, 1}, kAdder, 6);
    if (!installed.refusal().empty()) continue;
    const Registers before = SomeRegisters();
    const uint64_t oversize = ring_.counters(0).oversize;
    Registers after = Run(installed, before);
    after[Reg::kSp] += 8;  // ContextOf takes the return address for pushed
    ReturnContext context;
    static_cast<lang::testing::SelfContext&>(context) = ContextOf(after, WordAt(SlotOf(before)));
    for (const Reg reg : {Reg::kDi, Reg::kSi, Reg::kDx, Reg::kCx, Reg::kR8, Reg::kR9})
      context.captured.push_back(before[reg]);
    std::vector<std::byte> payload;
    const auto outcome = lang::Fetch(program, probe.limits, context, payload);
    std::vector<Record> records = ring_.TakeRecords();
    std::erase_if(records, [](const Record& record) { return record.header.probe != 0; });
    if (outcome == lang::FetchOutcome::kDropped) {
      ASSERT_EQ(ring_.counters(0).oversize, oversize + 1);
      continue;
    }
    ASSERT_EQ(records.size(), 1u);
    ASSERT_EQ(Word(records[0], 0), WordAt(SlotOf(before)));
    records[0].payload.erase(records[0].payload.begin(), records[0].payload.begin() + 8);
    ASSERT_EQ(records[0].payload, payload);
    ++compared;
  }
  EXPECT_GT(compared, 100u);
}

// The frame vanishes during the call.
TEST_P(ReturnTest, AsksWhenTheFrameIsNotThisThreads) {
  const DetourProbe probe = Probe("r=$retval:u64");
  // add $1,%rdi; nop; movq $0,(%r14); ret
  const uint8_t function[] = {0x48, 0x83, 0xc7, 0x01, 0x90, 0x49, 0xc7, 0x06, 0, 0, 0, 0, 0xc3};
  InstalledReturn installed(ring_, {&probe, 1}, function);
  Registers registers = SomeRegisters();
  uint64_t ignored = 0;
  registers[Reg::kR14] = reinterpret_cast<uint64_t>(&ignored);
  RunAt(registers, installed.site().original());
  const uint64_t caller = WordAt(SlotOf(registers));
  registers[Reg::kR14] = reinterpret_cast<uint64_t>(&ring_.shadow_stack().depth);
  registers[Reg::kR15] = caller;
  Registers expected = registers;
  ++expected[Reg::kDi];
  AskScope scope(installed.trampoline(), installed.address(), 0);
  installed.site().Run(registers);
  EXPECT_EQ(asked.times, 1);
  EXPECT_EQ(registers.general, expected.general);
  EXPECT_EQ(ring_.TakeRecords().size(), 0u);
}

// Frames above the one that returns stay; it leaves a gap, which the next hijack takes off.
TEST_P(ReturnTest, ReturnsBelowAFrameOfAnotherStack) {
  const DetourProbe probe = Probe("r=$retval:u64");
  // add $1,%rdi; nop; incq (%r14); ret: somebody pushes a frame that is dead by the next hijack
  const uint8_t function[] = {0x48, 0x83, 0xc7, 0x01, 0x90, 0x49, 0xff, 0x06, 0xc3};
  InstalledReturn installed(ring_, {&probe, 1}, function);
  ring::ShadowStack& shadow = ring_.shadow_stack();
  shadow.frames[1] = {.slot = 0x10, .trampoline = 1, .probe = 5};
  Registers before = SomeRegisters();
  before[Reg::kR14] = reinterpret_cast<uint64_t>(&shadow.depth);
  Registers registers = before;
  installed.site().Run(registers);
  EXPECT_EQ(shadow.depth, 2u);
  EXPECT_EQ(shadow.frames[0].slot, 0u);
  registers = before;
  installed.site().Run(registers);
  EXPECT_EQ(shadow.depth, 2u);
  EXPECT_EQ(ring_.counters(5).unwound, 1u);
  EXPECT_EQ(ring_.TakeRecords().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReturnTest, ::testing::Range(0, 5));

}  // namespace
}  // namespace probed::detour::testing
