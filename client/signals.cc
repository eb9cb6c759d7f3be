#include "client/signals.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
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

// timeout(1) sends its signal to us and to our process group: that is one request, not two.
class Requests {
 public:
  bool IsRepeated(int number, pid_t sender) const {
    constexpr int64_t kAtOnce = 200'000'000;
    return number == number_ && sender == sender_ && Now() - when_ < kAtOnce;
  }
  void Note(int number, pid_t sender) {
    number_ = number;
    sender_ = sender;
    when_ = Now();
  }

 private:
  static int64_t Now() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }

  int number_ = 0;
  pid_t sender_ = 0;
  int64_t when_ = 0;
};

Requests requests;  // of this process, as its signals are

void GiveUp() {
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
  for (bool repeated = true; repeated;) {
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    const auto number = static_cast<int>(info.ssi_signo);
    const auto sender = static_cast<pid_t>(info.ssi_pid);
    if (number == SIGCHLD || info.ssi_code == SI_KERNEL) break;
    repeated = requests.IsRepeated(number, sender);
    if (!repeated) requests.Note(number, sender);
  }
  return Event{.number = static_cast<int>(info.ssi_signo),
               .from_terminal = info.ssi_code == SI_KERNEL};
}

void Signals::LetInterruptsEndUs() {
  sigset_t set = Interrupts();
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  action.sa_sigaction = [](int number, siginfo_t* info, void*) {
    if (info->si_code == SI_KERNEL || !requests.IsRepeated(number, info->si_pid)) GiveUp();
  };
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
      if (event && event->number != SIGCHLD) GiveUp();
    }
  });
}

EndOnInterrupt::~EndOnInterrupt() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(end_.get(), &one, sizeof one);
  thread_.join();
}

}  // namespace probed::client
