#include "daemon/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <list>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/clock.h"
#include "daemon/canary.h"
#include "daemon/event_loop.h"
#include "daemon/guard.h"
#include "daemon/journal_file.h"
#include "daemon/logging.h"
#include "daemon/net/address.h"
#include "daemon/net/connections.h"
#include "daemon/net/unix_listener.h"
#include "daemon/service_manager.h"
#include "daemon/version.h"

namespace probed::daemon {
namespace {

constexpr std::chrono::milliseconds kHealthBudget{2000};
constexpr std::chrono::seconds kHealthInterval{10};
constexpr std::chrono::seconds kShortLife{1};
constexpr int kMostShortLives = 5;

engine::EngineOptions ToEngineOptions(const Limits& limits, const OptimizationConfig& optimization,
                                      int patch_journal) {
  engine::EngineOptions options;
  options.max_targets = static_cast<uint32_t>(limits.max_targets);
  options.max_probes = static_cast<uint32_t>(limits.max_probes);
  options.optimization.enabled = optimization.enabled;
  options.optimization.ring_bytes = static_cast<uint64_t>(optimization.ring_bytes);
  options.patch_journal = patch_journal;
  return options;
}

Sessions::Actions ActionsOn(engine::Engine& engine) {
  return {
      [&engine](event::TargetId target) { return engine.Detach(target); },
      [&engine](const std::vector<event::ProbeId>& probes) { return engine.DeleteProbes(probes); }};
}

Result<Guard> StartGuard(engine::Engine& engine, int journal, const Canary& canary) {
  PROBED_TRY(const UniqueFd tracer_end, engine.TracerEnd());
  return Guard::Start({.journal = journal,
                       .tracer = engine.tracer(),
                       .tracer_end = tracer_end.get(),
                       .canary = canary.end()});
}

void SweepKernel() {
  const auto report = engine::Engine::SweepKernel();
  for (const Error& error : report.errors)
    spdlog::warn("tracefs: {}", error.ToString());
  if (report.instances + report.definitions > 0) {
    spdlog::info("took away what dead daemons had left in tracefs: {} instances, {} definitions",
                 report.instances, report.definitions);
  }
}

// A directory that cannot be read is a warning, as every definition is.
std::vector<std::string> BootLines(const DefinitionsConfig& config) {
  std::vector<std::string> lines;
  for (const std::string& parameter : config.probe_events)
    for (std::string& line : ParseBootParameter(parameter))
      lines.push_back(std::move(line));
  auto files = ReadDefinitionFiles(config.directory);
  if (!files.ok()) spdlog::warn("definitions: {}", files.error().ToString());
  if (files.ok()) lines.insert(lines.end(), files->begin(), files->end());
  return lines;
}

}  // namespace

// Members end in reverse order: sockets, calls, sessions, and last the engine, which detaches.
struct Daemon::State {
  State(DaemonOptions given, UniqueFd signal_fd, UniqueFd patches, Canary started_canary,
        Guard started_guard, std::unique_ptr<engine::Engine> started)
      : options(std::move(given)),
        signals(std::move(signal_fd)),
        journal(std::move(patches)),
        canary(std::move(started_canary)),
        guard(std::move(started_guard)),
        engine(std::move(started)),
        boot(options.private_fd ? std::vector<std::string>()
                                : BootLines(options.config.definitions)),
        sessions(ActionsOn(*engine)),
        connections(context, options.config.admin_group) {}

  Status Listen();
  Status ListenOn(const std::string& text);
  Status AddListener(UnixListener listener);
  Status ServePrivate(int fd);
  Status WatchSignals();
  Status WatchHealth();
  Status WatchGuard();
  Status StartGuard();

  void Accept(const UnixListener& listener);
  void OnSignal();
  void CheckHealth();
  void EndIfSilent() const;
  void OnGuardEnded();
  void Reload();

  DaemonOptions options;
  UniqueFd signals;
  UniqueFd journal;
  Canary canary;
  Guard guard;
  int short_lived_guards = 0;
  std::unique_ptr<engine::Engine> engine;
  BootDefinitions boot;
  Authorizer authorizer;
  Sessions sessions;
  ServiceContext context{*engine, authorizer, sessions, options.config.limits, boot};
  Connections connections;
  std::vector<std::unique_ptr<ServiceSet>> tls;
  std::list<UnixListener> listeners;  // addresses stay: the loop refers to them
  UniqueFd health_timer;
  EventLoop loop;
  bool healthy = true;
  uint64_t unhealthy_since_ns = 0;
};

Result<UniqueFd> BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, signal);
  UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, "signalfd");
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGPIPE);
  if (int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0)
    return ErrnoError(error, "pthread_sigmask");
  return fd;
}

Result<std::unique_ptr<Daemon>> Daemon::Start(DaemonOptions options, UniqueFd signals) {
  const std::optional<int> private_fd = options.private_fd;
  const std::string directory = private_fd ? "" : RuntimeDirectory();
  PROBED_TRY(UniqueFd journal, CreateJournal(directory));
  PROBED_TRY(auto engine, engine::Engine::Create(ToEngineOptions(
                              options.config.limits, options.config.optimization, journal.get())));
  PROBED_TRY(Canary canary, Canary::Start());
  PROBED_TRY(Guard guard, StartGuard(*engine, journal.get(), canary));
  CleanLeftovers(directory, *engine);
  SweepKernel();
  auto state = std::make_unique<State>(std::move(options), std::move(signals), std::move(journal),
                                       std::move(canary), std::move(guard), std::move(engine));
  state->boot.DefineInKernel(*state->engine);
  PROBED_RETURN_IF_ERROR(state->loop.Open());
  PROBED_RETURN_IF_ERROR(state->WatchSignals());
  PROBED_RETURN_IF_ERROR(state->WatchGuard());
  PROBED_RETURN_IF_ERROR(private_fd ? state->ServePrivate(*private_fd) : state->Listen());
  PROBED_RETURN_IF_ERROR(state->WatchHealth());
  return std::unique_ptr<Daemon>(new Daemon(std::move(state)));
}

Daemon::Daemon(std::unique_ptr<State> state) : state_(std::move(state)) {}

Daemon::~Daemon() {
  NotifyStopping();
  state_->context.stop.request_stop();
  spdlog::debug("giving {} targets back", state_->engine->ListTargets().size());
}

Status Daemon::Run() {
  NotifyReady(fmt::format("probed {} is serving", Version()));
  return state_->loop.Run();
}

Status Daemon::State::Listen() {
  PROBED_TRY(auto passed, PassedSockets());
  for (UniqueFd& fd : passed) {
    spdlog::info("listening on a socket of the service manager");
    PROBED_RETURN_IF_ERROR(AddListener(UnixListener(std::move(fd))));
  }
  std::vector<std::string> addresses = options.config.listen;
  if (addresses.empty() && passed.empty()) {
    addresses.emplace_back(kDefaultSocket);
    mkdir("/run/probed", 0755);  // the unit's RuntimeDirectory= when there is one; EEXIST is fine
  }
  for (const std::string& address : addresses)
    PROBED_RETURN_IF_ERROR(ListenOn(address));
  return {};
}

Status Daemon::State::ListenOn(const std::string& text) {
  PROBED_TRY(const ListenAddress address, ParseListenAddress(text));
  if (address.kind == ListenAddress::Kind::kTcp) {
    PROBED_TRY(auto services, ServiceSet::StartTls(context, address.path, options.config.tls));
    tls.push_back(std::move(services));
  } else {
    PROBED_TRY(auto listener, UnixListener::Open(address.path, options.config.socket_group));
    PROBED_RETURN_IF_ERROR(AddListener(std::move(listener)));
  }
  spdlog::info("listening on {}", text);
  return {};
}

Status Daemon::State::AddListener(UnixListener listener) {
  const UnixListener& kept = listeners.emplace_back(std::move(listener));
  return loop.Watch(kept.fd(), EPOLLIN, [this, &kept] { Accept(kept); });
}

void Daemon::State::Accept(const UnixListener& listener) {
  UniqueFd connection = listener.Accept();
  if (!connection.valid()) return;
  auto fd = connections.Add(std::move(connection));
  if (!fd.ok()) {
    spdlog::warn("connection refused: {}", fd.error().ToString());
    return;
  }
  const Status watched = loop.Watch(*fd, EPOLLRDHUP, [this, fd = *fd] {
    loop.Unwatch(fd);
    connections.Forget(fd);
  });
  if (!watched.ok()) connections.Forget(*fd);
}

Status Daemon::State::ServePrivate(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  PROBED_TRY(const int watch, connections.Add(UniqueFd(fd), true));
  return loop.Watch(watch, EPOLLRDHUP, [this] { loop.Stop(); });
}

Status Daemon::State::WatchSignals() {
  return loop.Watch(signals.get(), EPOLLIN, [this] { OnSignal(); });
}

void Daemon::State::OnSignal() {
  signalfd_siginfo info{};
  if (read(signals.get(), &info, sizeof info) != sizeof info) return;
  if (info.ssi_signo == SIGHUP) {
    Reload();
    return;
  }
  spdlog::info("signal {}: stopping", info.ssi_signo);
  loop.Stop();
}

Status Daemon::State::WatchGuard() {
  return loop.Watch(guard.ended_fd(), EPOLLIN, [this] { OnGuardEnded(); });
}

Status Daemon::State::StartGuard() {
  PROBED_TRY(guard, daemon::StartGuard(*engine, journal.get(), canary));
  return WatchGuard();
}

void Daemon::State::OnGuardEnded() {
  loop.Unwatch(guard.ended_fd());
  const bool lived = guard.Reap() >= kShortLife;
  short_lived_guards = lived ? 0 : short_lived_guards + 1;
  if (short_lived_guards > kMostShortLives) {
    spdlog::error("the guard process keeps ending; targets are not protected from our death");
    return;
  }
  spdlog::warn("the guard process {} has ended; starting another", guard.pid());
  const Status started = StartGuard();
  if (!started.ok()) spdlog::error("{}", started.error().ToString());
}

void Daemon::State::Reload() {
  NotifyReloading();
  const auto config = options.read_config();
  const auto level = config.ok() ? ParseLogLevel(config->log_level) : config.error();
  if (level.ok()) {
    spdlog::set_level(*level);
    spdlog::info("configuration read again: log level {}", config->log_level);
  } else {
    spdlog::error("configuration not read again: {}", level.error().ToString());
  }
  NotifyReady("serving");
}

Status Daemon::State::WatchHealth() {
  const std::chrono::nanoseconds silence =
      std::chrono::seconds(options.config.limits.max_silence_seconds);
  const std::chrono::nanoseconds interval =
      std::min<std::chrono::nanoseconds>(WatchdogInterval().value_or(kHealthInterval), silence / 2);
  health_timer = UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!health_timer.valid()) return ErrnoError(errno, "timerfd_create");
  const timespec period{interval.count() / 1'000'000'000, interval.count() % 1'000'000'000};
  const itimerspec timer{period, period};
  if (timerfd_settime(health_timer.get(), 0, &timer, nullptr) != 0)
    return ErrnoError(errno, "timerfd_settime");
  return loop.Watch(health_timer.get(), EPOLLIN, [this] { CheckHealth(); });
}

// A target can make its tracer wait for ever (userfaultfd(2)), and with it all the others. What is
// killed does not wait any more, and the guard gives them back. Nothing is to be run on the way out
// that could wait for the tracer.
void Daemon::State::EndIfSilent() const {
  const std::chrono::seconds most(options.config.limits.max_silence_seconds);
  if (healthy || std::chrono::nanoseconds(MonotonicNow() - unhealthy_since_ns) < most) return;
  spdlog::critical("tracer thread does not answer; ending, so that the guard gives targets back");
  spdlog::default_logger()->flush();
  _exit(EXIT_FAILURE);
}

// The watchdog is fed by the tracer's answer, not by this loop's being alive.
void Daemon::State::CheckHealth() {
  uint64_t expirations = 0;
  if (read(health_timer.get(), &expirations, sizeof expirations) != sizeof expirations) return;
  const bool now = engine->Healthy(kHealthBudget);
  if (now) NotifyAlive();
  if (now == healthy) return EndIfSilent();
  healthy = now;
  unhealthy_since_ns = MonotonicNow();
  spdlog::log(now ? spdlog::level::info : spdlog::level::err, "tracer thread {}",
              now ? "answers again" : "does not answer");
  NotifyStatus(now ? "serving" : "the tracer thread does not answer");
  connections.SetServing(now);
  for (auto& services : tls)
    services->SetServing(now);
}

}  // namespace probed::daemon
