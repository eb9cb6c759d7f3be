// A program with the handler whose tracer dies at a breakpoint, at each point of dealing with it.
#include "engine/detour/trap_handler.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>

namespace probed::detour {
namespace {

constexpr uint64_t kId = 0x1122334455667788;
constexpr uint8_t kInt3 = 0xcc, kNop = 0x90;
constexpr uint64_t kResumeFlag = 1 << 16;

struct KernelAction {
  uint64_t handler, flags, restorer, mask;
};

// One page: the handler, and at kFunction `int3; mov eax, 7; ret`, at kCopy, behind the mark, what
// `mov eax, 9; ret` is to a copy of it.
constexpr size_t kFunction = 2048, kCopy = 3072;

class Program {
 public:
  Program() {
    page_ = static_cast<uint8_t*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    TrapHandlerCode handler = AssembleTrapHandler(kId);
    std::memcpy(page_, handler.code.data(), handler.code.size());
    const uint8_t function[] = {kInt3, 0xb8, 7, 0, 0, 0, 0xc3};
    const uint8_t copy[] = {0xb8, 9, 0, 0, 0, 0xc3};
    std::memcpy(page_ + kFunction, function, sizeof function);
    std::memcpy(page_ + kCopy - sizeof kCopyMark, &kCopyMark, sizeof kCopyMark);
    std::memcpy(page_ + kCopy, copy, sizeof copy);
    action_ = {.handler = reinterpret_cast<uint64_t>(page_) + handler.entry,
               .flags = SA_SIGINFO | 0x04000000,
               .restorer = reinterpret_cast<uint64_t>(page_) + handler.restorer,
               .mask = ~uint64_t{0}};
  }
  ~Program() { munmap(page_, 4096); }

  uint64_t At(size_t offset) const { return reinterpret_cast<uint64_t>(page_) + offset; }
  void LeaveBehind() { page_[AssembleTrapHandler(kId).use] = 2; }
  uint64_t Entry() const { return action_.handler; }
  uint64_t Restorer() const { return action_.restorer; }
  void SetProgramsAction(const KernelAction& action) {
    std::memcpy(page_ + AssembleTrapHandler(kId).action, &action, sizeof action);
  }
  void TakeOut() { __atomic_store_n(page_ + kFunction, kNop, __ATOMIC_SEQ_CST); }

  // In a process of its own: calls the function and ends with its result.
  [[noreturn]] void Run() const {
    syscall(SYS_rt_sigaction, SIGTRAP, &action_, nullptr, sizeof(uint64_t));
    raise(SIGSTOP);
    _exit(reinterpret_cast<int (*)()>(At(kFunction))());
  }

 private:
  uint8_t* page_;
  KernelAction action_{};
};

// Seizes a program, lets it run into the breakpoint, does `deal` there and dies of SIGKILL.
// Returns the program, whose parent is this process again (PR_SET_CHILD_SUBREAPER is not needed:
// the test made it, the tracer only traces it).
pid_t RunWithDyingTracer(const Program& program, const std::function<void(pid_t)>& deal) {
  pid_t pid = fork();
  if (pid == 0) program.Run();
  waitpid(pid, nullptr, WUNTRACED);
  pid_t tracer = fork();
  if (tracer == 0) {
    ptrace(PTRACE_SEIZE, pid, 0, 0);
    kill(pid, SIGCONT);
    while (true) {
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | __WALL);
      if (info.si_code == CLD_TRAPPED && info.si_status == SIGTRAP) break;
      waitpid(pid, nullptr, __WALL | WNOHANG);
      ptrace(PTRACE_CONT, pid, 0, 0);
    }
    deal(pid);
    raise(SIGKILL);
  }
  waitpid(tracer, nullptr, 0);
  return pid;
}

void GoTo(pid_t pid, uint64_t ip, uint64_t flag) {
  user_regs_struct regs{};
  ptrace(PTRACE_GETREGS, pid, 0, &regs);
  regs.rip = ip;
  regs.eflags |= flag;
  ptrace(PTRACE_SETREGS, pid, 0, &regs);
}

int StatusOf(pid_t pid) {
  int status = -1;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() < deadline) continue;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
  }
  return status;
}

// In user mode as long as the kernel counts time for it.
bool IsBusy(pid_t pid) {
  auto ticks = [&] {
    char text[512] = "";
    int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY);
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    unsigned long user = 0, system = 0;
    if (size > 0)
      sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
             &system);
    return user + system;
  };
  unsigned long before = ticks();
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (ticks() < before + 2) {
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

void ExpectExit(pid_t pid, int code) {
  int status = StatusOf(pid);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), code);
}

TEST(TrapHandlerTest, WaitsAtABreakpointUntilItIsGone) {
  Program program;
  pid_t pid = RunWithDyingTracer(program, [](pid_t) {});
  EXPECT_TRUE(IsBusy(pid));
  program.TakeOut();
  ExpectExit(pid, 7);
}

TEST(TrapHandlerTest, LeavesAThreadThatWasMovedOnWhereItIs) {
  Program program;
  uint64_t next = program.At(kFunction + 1);  // behind the int3, where the ip is anyway
  pid_t pid = RunWithDyingTracer(program, [&](pid_t p) { GoTo(p, next, kResumeFlag); });
  ExpectExit(pid, 7);
}

TEST(TrapHandlerTest, KnowsTheStartOfACopy) {
  Program program;
  pid_t pid = RunWithDyingTracer(program, [&](pid_t p) { GoTo(p, program.At(kCopy), 0); });
  ExpectExit(pid, 9);
}

// The flag of one trap must not be taken for the next one's.
TEST(TrapHandlerTest, ABreakpointClearsTheFlag) {
  Program program;
  uint64_t site = program.At(kFunction);
  pid_t pid = RunWithDyingTracer(program, [&](pid_t p) { GoTo(p, site, kResumeFlag); });
  EXPECT_TRUE(IsBusy(pid));
  program.TakeOut();
  ExpectExit(pid, 7);
}

TEST(TrapHandlerTest, ASignalThatWasSentKills) {
  Program program;
  pid_t pid = RunWithDyingTracer(program, [](pid_t) {});
  kill(pid, SIGTRAP);
  int status = StatusOf(pid);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTRAP);
}

// Ends with 20 and what the program's own handler is told of the signal's value.
void OnOwnSignal(int, siginfo_t* info, void*) {
  _exit(20 + info->si_value.sival_int);
}

TEST(TrapHandlerTest, ASignalThatWasSentReachesTheProgramsHandlerAsItWas) {
  Program program;
  program.SetProgramsAction({.handler = reinterpret_cast<uint64_t>(&OnOwnSignal),
                             .flags = SA_SIGINFO | 0x04000000,
                             .restorer = program.Restorer(),
                             .mask = 0});
  pid_t pid = RunWithDyingTracer(program, [](pid_t) {});
  sigqueue(pid, SIGTRAP, {.sival_int = 3});
  ExpectExit(pid, 23);
}

TEST(TrapHandlerTest, DoesNothingForAHandlerThatCallsIt) {
  Program program;
  siginfo_t sent{};
  sent.si_signo = SIGTRAP;
  sent.si_code = SI_USER;
  struct sigaction before {
  }, after{};
  sigaction(SIGTRAP, nullptr, &before);
  reinterpret_cast<void (*)(int, siginfo_t*, void*)>(program.Entry())(SIGTRAP, &sent, nullptr);
  sigaction(SIGTRAP, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGTRAP));
}

TEST(TrapHandlerTest, HasNoBreakpointsOnceItIsLeftBehind) {
  Program program;
  program.LeaveBehind();
  int status = StatusOf(RunWithDyingTracer(program, [](pid_t) {}));
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTRAP);
}

}  // namespace
}  // namespace probed::detour
