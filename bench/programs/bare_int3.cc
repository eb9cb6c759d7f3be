// The floor: a tracer that does nothing at an int3 but read the registers and resume the thread
// behind it: waitpid, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_CONT.
// usage: bare_int3 PID ADDRESS HITS same|ip|step|sleep|spin|follow
// same: held on one CPU with the program. ip: as same, but only the ip is written, with
// PTRACE_POKEUSER, as our tracer does. step: as same, and one single step with the same calls at
// every hit.
// ADDRESS must be an endbr64, which can be skipped: the bench programs are built so.
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

constexpr unsigned long kEndbrLength = 4;
constexpr std::chrono::microseconds kSpin{50};
constexpr long kFollowInterval = 64;

void Pin(pid_t pid, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(pid, sizeof set, &set);
}

// Field 39 of /proc/PID/stat, counted from behind the name in parentheses.
int CpuOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string word;
  while (file >> word && word.back() != ')') {
  }
  for (int field = 3; field <= 39; ++field)
    file >> word;
  return std::atoi(word.c_str());
}

int WaitForStop(pid_t pid, const std::string& way) {
  int status = 0;
  if (way == "spin") {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    while (std::chrono::steady_clock::now() < until)
      if (waitpid(pid, &status, WNOHANG) == pid) return status;
  }
  return waitpid(pid, &status, 0) == pid ? status : 0;
}

bool Step(pid_t pid, const std::string& way) {
  ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
  if (!WIFSTOPPED(WaitForStop(pid, way))) return false;
  user_regs_struct regs{};
  ptrace(PTRACE_GETREGS, pid, 0, &regs);
  ptrace(PTRACE_SETREGS, pid, 0, &regs);
  return true;
}

bool Skip(pid_t pid, unsigned long address, const std::string& way) {
  if (!WIFSTOPPED(WaitForStop(pid, way))) return false;
  user_regs_struct regs{};
  ptrace(PTRACE_GETREGS, pid, 0, &regs);
  regs.rip = address + kEndbrLength;
  if (way == "ip") {
    ptrace(PTRACE_POKEUSER, pid, offsetof(user, regs.rip), regs.rip);
  } else {
    ptrace(PTRACE_SETREGS, pid, 0, &regs);
  }
  if (way == "step" && !Step(pid, way)) return false;
  return ptrace(PTRACE_CONT, pid, 0, 0) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const pid_t pid = std::atoi(argv[1]);
  const unsigned long address = std::strtoul(argv[2], nullptr, 16);
  const long hits = std::atol(argv[3]);
  const std::string way = argv[4];
  if (way == "same" || way == "ip" || way == "step") {
    Pin(0, 0);
    Pin(pid, 0);
  }
  if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0 || ptrace(PTRACE_INTERRUPT, pid, 0, 0) != 0) return 1;
  int status = 0;
  waitpid(pid, &status, 0);
  const long original = ptrace(PTRACE_PEEKTEXT, pid, address, 0);
  ptrace(PTRACE_POKETEXT, pid, address, (original & ~0xffL) | 0xcc);
  ptrace(PTRACE_CONT, pid, 0, 0);
  std::printf("armed\n");
  std::fflush(stdout);
  for (long hit = 0; hit < hits; hit++) {
    if (way == "follow" && hit % kFollowInterval == 0) Pin(0, CpuOf(pid));
    if (!Skip(pid, address, way)) return 1;
  }
  ptrace(PTRACE_INTERRUPT, pid, 0, 0);
  waitpid(pid, &status, 0);
  ptrace(PTRACE_POKETEXT, pid, address, original);
  ptrace(PTRACE_DETACH, pid, 0, 0);
  return 0;
}
