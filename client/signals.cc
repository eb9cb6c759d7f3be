#include "client/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <iterator>
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
  constexpr std::string_view kText = "\nprobectl: interrupted; the daemon cleans up without us\n";
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

EndOnInterrupt::EndOnInterrupt(Signals& signals)
    : signals_(signals), end_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] {
    pollfd fds[] = {{signals_.fd(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
    while (::poll(fds, std::size(fds), -1) >= 0 && fds[1].revents == 0) {
      auto event = signals_.Next();
      if (event && event->number != SIGCHLD) GiveUp(event->number);
    }
  });
}

EndOnInterrupt::~EndOnInterrupt() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(end_.get(), &one, sizeof one);
  thread_.join();
}

}  // namespace probed::client
