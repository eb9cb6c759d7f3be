#include "tests/flow/stepped_program.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fork.h"

namespace probed::probe {
namespace {

// The switch between tracer and child is cheapest on one processor.
void PinToThisProcessor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(::sched_getcpu()), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

[[noreturn]] void RunChild(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  int null = ::open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2})
    ::dup2(null, fd);
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

std::unique_ptr<SteppedProgram> SteppedProgram::Start(const std::vector<std::string>& command) {
  PinToThisProcessor();
  pid_t pid = ForkOrDie();
  if (pid == 0) RunChild(command);
  std::unique_ptr<SteppedProgram> program(new SteppedProgram(pid));
  if (pid < 0 || !program->Wait()) return nullptr;
  ::ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_EXITKILL);
  return program;
}

SteppedProgram::~SteppedProgram() {
  if (exit_status_ != -1) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool SteppedProgram::RunTo(uint64_t address) {
  constexpr long kBreakpoint = 0xcc;
  void* where = reinterpret_cast<void*>(address);
  long word = ::ptrace(PTRACE_PEEKTEXT, pid_, where, nullptr);
  ::ptrace(PTRACE_POKETEXT, pid_, where, (word & ~0xffL) | kBreakpoint);
  ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
  if (!Wait() || ip() != address + 1) return false;
  ::ptrace(PTRACE_POKETEXT, pid_, where, word);
  regs_.rip = address;
  return ::ptrace(PTRACE_SETREGS, pid_, nullptr, &regs_) == 0;
}

bool SteppedProgram::Step() {
  int signal = signal_;
  signal_ = 0;
  ::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, static_cast<long>(signal));
  return Wait();
}

bool SteppedProgram::Wait() {
  int status = 0;
  if (::waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) {
    exit_status_ = status;
    return false;
  }
  if (WSTOPSIG(status) != SIGTRAP) signal_ = WSTOPSIG(status);
  return ::ptrace(PTRACE_GETREGS, pid_, nullptr, &regs_) == 0;
}

}  // namespace probed::probe
