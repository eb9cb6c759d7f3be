// A thread is stopped at every instruction of a detour: what Locate says must be what the ring and
// the counters show at that moment, and what Unwind says the registers at the site.

#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <cstring>

#include "engine/detour/leave.h"
#include "tests/detour/holed_memory.h"
#include "tests/detour/installed_detour.h"
#include "tests/detour/program_generator.h"
#include "tests/detour/programs.h"

namespace probed::detour::testing {
namespace {

using lang::Reg;

constexpr uint64_t kTrapFlag = 0x100;
// push %rbp; mov %rsp,%rbp; pop %rbp; mov %esi,%eax; ret
constexpr uint8_t kFunction[] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0x89, 0xf0, 0xc3};

class OwnMemory : public arch::MemoryBus {
 public:
  bool Load(uint64_t address, std::span<std::byte> out) override {
    std::memcpy(out.data(), reinterpret_cast<const void*>(address), out.size());
    return true;
  }
  bool Store(uint64_t, std::span<const std::byte>) override { return false; }
};

user_regs_struct RegsOf(const mcontext_t& machine) {
  const auto reg = [&](int index) { return static_cast<uint64_t>(machine.gregs[index]); };
  user_regs_struct regs{};
  regs.rax = reg(REG_RAX);
  regs.rbx = reg(REG_RBX);
  regs.rcx = reg(REG_RCX);
  regs.rdx = reg(REG_RDX);
  regs.rsi = reg(REG_RSI);
  regs.rdi = reg(REG_RDI);
  regs.rbp = reg(REG_RBP);
  regs.rsp = reg(REG_RSP);
  regs.r8 = reg(REG_R8);
  regs.r9 = reg(REG_R9);
  regs.r10 = reg(REG_R10);
  regs.r11 = reg(REG_R11);
  regs.r12 = reg(REG_R12);
  regs.r13 = reg(REG_R13);
  regs.r14 = reg(REG_R14);
  regs.r15 = reg(REG_R15);
  regs.rip = reg(REG_RIP);
  regs.eflags = reg(REG_EFL);
  return regs;
}

Registers GeneralOf(const user_regs_struct& regs) {
  Registers registers;
  registers.general = {regs.rax, regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi,
                       regs.rbp, regs.rsp, regs.r8,  regs.r9,  regs.r10, regs.r11,
                       regs.r12, regs.r13, regs.r14, regs.r15};
  registers.flags = regs.eflags & ~kTrapFlag;
  return registers;
}

// One run of a detour under the trap flag.
struct Walk {
  const InstalledDetour& installed;
  const Memory& memory;
  std::span<const DetourProbe> probes;
  Registers at_site;
  uint64_t done_before = 0;  // records and counts before the hit

  uint64_t stops = 0;
  uint64_t held = 0;  // stops with a reservation
  uint64_t in_routines = 0;
  std::string trouble = {};

  uint64_t Done() const;
  void Look(user_regs_struct regs);
  std::string CheckLocation(const Location& location) const;
};

Walk* walk = nullptr;

// Hits that have left a trace: records and counts.
uint64_t Walk::Done() const {
  uint64_t done = 0;
  for (const Record& record : memory.Records())
    done += record.header.probe < ring::kMaxProbes;
  for (const DetourProbe& probe : probes) {
    const ring::ProbeCounters& counters = memory.counters(probe.index);
    done += counters.counted + counters.lost + counters.oversize;
  }
  return done;
}

std::string Walk::CheckLocation(const Location& location) const {
  const uint64_t done = Done() - done_before;
  if (location.recorded != done) {
    return "recorded " + std::to_string(location.recorded) + ", done " + std::to_string(done);
  }
  const std::vector<Record> records = memory.Records();
  const uint64_t end =
      records.empty() ? memory.tail() : records.back().position + records.back().length;
  const bool holds = end != memory.head();
  if (holds != location.reservation.has_value()) return "reservation";
  if (!holds) return "";
  if (location.reservation->cpu != 0) return "cpu";
  if (location.reservation->position != end) return "position";
  return location.reservation->length == memory.head() - end ? "" : "length";
}

void Walk::Look(user_regs_struct regs) {
  OwnMemory bus;
  in_routines += LeaveRoutine(installed.detour().memory.routines, regs, bus);
  const auto location = Locate(installed.detour(), installed.buffer(), regs);
  if (!location || !trouble.empty()) return;
  ++stops;
  held += location->reservation.has_value();
  const uint64_t offset = regs.rip - installed.buffer();
  if (const std::string what = CheckLocation(*location); !what.empty()) {
    trouble = what + " at offset " + std::to_string(offset);
  }
  if (location->phase == Phase::kDisplaced) return;
  user_regs_struct unwound = regs;
  if (!Unwind(installed.detour(), installed.buffer(), installed.site(), unwound, bus) ||
      unwound.rip != installed.site() || GeneralOf(unwound) != at_site) {
    trouble = "registers at offset " + std::to_string(offset);
  }
}

void OnStep(int, siginfo_t*, void* context) {
  if (walk != nullptr) walk->Look(RegsOf(static_cast<ucontext_t*>(context)->uc_mcontext));
}

class LeaveTest : public ::testing::TestWithParam<int> {
 protected:
  LeaveTest() : memory_(static_cast<uint64_t>(GetParam()) * 104729 + 5) {
    struct sigaction action {};
    action.sa_sigaction = OnStep;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ::sigaction(SIGTRAP, &action, nullptr);
  }
  ~LeaveTest() override { ::signal(SIGTRAP, SIG_DFL); }

  Registers SomeRegisters() {
    Registers registers;
    for (uint64_t& value : registers.general)
      value = memory_.Address();
    registers[Reg::kSp] = stack_.address() + stack_.size() - 8192;
    registers.flags = 0x202 | (memory_.random()() & 0xcd5);
    return registers;
  }

  void WalkThrough(const InstalledDetour& installed, std::span<const DetourProbe> probes) {
    const Registers before = SomeRegisters();
    Registers expected = before;
    RunAt(expected, installed.original());

    Walk this_walk{.installed = installed, .memory = ring_, .probes = probes, .at_site = before};
    this_walk.at_site[Reg::kSp] -= 8;  // the return address
    this_walk.done_before = this_walk.Done();
    Registers registers = before;
    registers.flags |= kTrapFlag;
    walk = &this_walk;
    installed.Run(registers);
    walk = nullptr;
    registers.flags &= ~kTrapFlag;
    ASSERT_EQ(this_walk.trouble, "");
    ASSERT_EQ(registers, expected);
    ASSERT_GT(this_walk.stops, 20u);
    EXPECT_EQ(this_walk.Done() - this_walk.done_before, probes.size());
    stops_ += this_walk.stops;
    held_ += this_walk.held;
    in_routines_ += this_walk.in_routines;
  }

  HoledMemory memory_;
  Mapping stack_{64 << 10};
  Memory ring_{4096};  // small: laps and loss are frequent
  uint64_t stops_ = 0;
  uint64_t held_ = 0;
  uint64_t in_routines_ = 0;
};

TEST_P(LeaveTest, AtEveryInstruction) {
  ProgramGenerator generator(memory_);
  const auto string = Define("text=+0(%si):string");  // which leads through the routines
  for (int round = 0; round < 6 && !HasFatalFailure(); ++round) {
    std::vector<lang::FetchProgram> programs;
    for (uint64_t count = 1 + memory_.Below(4); count > 0; --count)
      programs.push_back(generator.Next());
    std::vector<DetourProbe> probes(programs.size());
    for (uint32_t i = 0; i < probes.size(); ++i) {
      probes[i] = {.program = &programs[i],
                   .limits = {.max_string = 64, .kernel_string_rules = memory_.OneIn(3)},
                   .file_base = kFileBase,
                   .index = i};
    }
    probes.push_back({.program = string->program.get(),
                      .limits = {.max_string = 64},
                      .file_base = kFileBase,
                      .index = static_cast<uint32_t>(probes.size())});
    InstalledDetour installed(ring_, probes, kFunction);
    if (!installed.refusal().empty()) continue;
    for (uint32_t i = 0; i < probes.size(); ++i)
      ring_.SetMode(i, memory_.OneIn(4) ? ring::kModeCount : ring::kModeRecord);
    for (int hit = 0; hit < 5 && !HasFatalFailure(); ++hit) {
      WalkThrough(installed, probes);
      if (!memory_.OneIn(4)) ring_.TakeRecords();
    }
  }
  EXPECT_GT(stops_, 3'000u);
  EXPECT_GT(held_, 300u);
  EXPECT_GT(in_routines_, 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LeaveTest, ::testing::Range(0, 10));

}  // namespace
}  // namespace probed::detour::testing
