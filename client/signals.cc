#include "client/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <string_view>

#include "client/exit_code.h"

namespace probed::client {
namespace {

constexpr int kInterrupts[] = {SIGINT, SIGTERM, SIGHUP};

// nohup asked us not to mind.
bool IsIgnoredHangup(int number) {
  struct sigaction old {};
  return number == SIGHUP && ::sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN;
}

sigset_t Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kInterrupts) {
    if (!IsIgnoredHangup(number)) sigaddset(&set, number);
  }
  return set;
}

void GiveUp(int) {
  constexpr std::string_view kText = "\nprobectl: gave up waiting for the clean-up\n";
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace

Signals::Signals() {
  sigset_t set = Interrupts();
  sigaddset(&set, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_.Reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

std::optional<Signals::Event> Signals::Next() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return Event{.number = static_cast<int>(info.ssi_signo),
               .from_terminal = info.ssi_code == SI_KERNEL};
}

void Signals::LetInterruptsEndUs() {
  sigset_t set = Interrupts();
  struct sigaction action {};
  action.sa_handler = GiveUp;
  for (int number : kInterrupts) {
    if (sigismember(&set, number) == 1) ::sigaction(number, &action, nullptr);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace probed::client
