#include "client/tracing_session.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "client/print_probe.h"
#include "engine/lang/definition_set.h"

namespace probed::client {
namespace {

// After a detach was answered, the notice of it is on its way behind the last events.
constexpr std::chrono::milliseconds kDrain{2000};
// Other sessions still hold the target: no notice will come, only events that are under way.
constexpr std::chrono::milliseconds kSharedDrain{100};
constexpr std::chrono::milliseconds kLook{10};

std::string NewSessionId() {
  uint64_t random = 0;
  [[maybe_unused]] ssize_t got = ::getrandom(&random, sizeof random, 0);
  return fmt::format("probectl-{}-{:016x}", ::getpid(), random);
}

bool IsGone(const RemoteError& remote) {
  return remote.error.code == ErrorCode::kNotFound || remote.error.code == ErrorCode::kUnavailable;
}

constexpr char kKernel[] = "targets/kernel";

bool IsInKernel(const v1::Probe& probe) {
  return probe.mechanism() == v1::MECHANISM_KERNEL;
}

// The kernel has its probes once, however many targets there are.
void TakeKernelLines(v1::CreateProbesRequest& request) {
  const auto dialect =
      request.dialect() == v1::DIALECT_KERNEL ? lang::Dialect::kKernel : lang::Dialect::kExtended;
  auto& lines = *request.mutable_definitions();
  const auto in_kernel = [&](const std::string& line) {
    return request.mechanism() == v1::MECHANISM_KERNEL ||
           lang::Classify(line, dialect) == lang::LineDestination::kKernel;
  };
  lines.erase(std::remove_if(lines.begin(), lines.end(), in_kernel), lines.end());
}

std::string DescribeProbe(const v1::Probe& probe) {
  const auto& counters = probe.counters();
  std::string text = fmt::format(
      "  {}:{}/{}  hits {}  missed {}  lost {}", probe.kind() == v1::PROBE_KIND_RETURN ? 'r' : 'p',
      probe.group(), probe.event(), counters.hits(), counters.missed(), counters.lost());
  text += DroppedOnPurpose(probe);
  if (probe.state() == v1::Probe::STATE_PENDING) {
    text += fmt::format("  (never armed: {})", probe.reason());
  }
  return text;
}

}  // namespace

TracingSession::TracingSession(Api& api, Talk& talk)
    : api_(api), talk_(talk), id_(NewSessionId()), started_(std::chrono::steady_clock::now()) {}

Reply<v1::Target> TracingSession::Attach(v1::AttachTargetRequest request) {
  request.set_session(id_);
  auto target = api_.AttachTarget(request);
  if (target) targets_.push_back(*target);
  return target;
}

Reply<void> TracingSession::Define(v1::CreateProbesRequest request) {
  request.set_session(id_);
  if (targets_.empty()) return DefineIn(kKernel, std::move(request));
  for (const auto& target : targets_) {
    if (auto defined = DefineIn(target.name(), request); !defined) return defined;
    TakeKernelLines(request);
  }
  return {};
}

Reply<void> TracingSession::DefineIn(const std::string& parent, v1::CreateProbesRequest request) {
  if (request.definitions().empty()) return {};
  request.set_parent(parent);
  auto created = api_.CreateProbes(request);
  if (!created) return tl::unexpected(std::move(created).error());
  probes_.insert(probes_.end(), created->probes().begin(), created->probes().end());
  return {};
}

std::vector<std::string> TracingSession::Parents() const {
  std::vector<std::string> parents;
  for (const auto& target : targets_)
    parents.push_back(target.name());
  if (std::any_of(probes_.begin(), probes_.end(), IsInKernel)) parents.emplace_back(kKernel);
  return parents;
}

Reply<void> TracingSession::Stream(uint64_t count, EventWriter& writer, Output& output) {
  v1::WatchEventsRequest request;
  EventPump::Options options;
  options.count = count;
  for (const auto& parent : Parents())
    request.add_targets(parent);
  for (const auto& target : targets_)
    options.targets.insert(target.name());
  for (const auto& probe : probes_)
    request.add_probes(probe.name());
  request.set_end_session(id_);
  request.set_greet(true);
  request.set_packed_hits(true);
  pump_ = std::make_unique<EventPump>(api_.WatchEvents(request), std::move(options), writer, output,
                                      talk_);
  if (!pump_->WaitSubscribed()) return pump_->Stop();
  return NoteEarlyEnds();
}

// A target that ended between the attach and the subscription.
Reply<void> TracingSession::NoteEarlyEnds() {
  auto listed = api_.ListTargets();
  if (!listed) return tl::unexpected(std::move(listed).error());
  for (const auto& target : targets_) {
    bool runs = std::any_of(listed->begin(), listed->end(), [&](const v1::Target& one) {
      return one.name() == target.name() && one.state() == v1::Target::STATE_RUNNING;
    });
    if (!runs) pump_->NoteExited(target.name());
  }
  return {};
}

Reply<void> TracingSession::Enable() {
  return Switch(true);
}

Reply<void> TracingSession::Switch(bool enabled) {
  std::vector<std::string> names;
  for (const auto& probe : probes_)
    names.push_back(probe.name());
  if (names.empty()) return {};
  auto switched = api_.SetProbesEnabled(names, enabled);
  if (!switched) return tl::unexpected(std::move(switched).error());
  return {};
}

// The last word on each probe; what a target that is gone cannot tell stays as it was.
void TracingSession::RememberProbes() {
  std::map<std::string, v1::Probe> known;
  for (const auto& parent : Parents()) {
    auto listed = api_.ListProbes(parent);
    if (!listed) continue;
    for (auto& probe : *listed)
      known.emplace(probe.name(), std::move(probe));
  }
  for (auto& probe : probes_) {
    auto found = known.find(probe.name());
    if (found == known.end()) continue;
    // Whether it ever was armed is worth more than that we have just disabled it.
    if (found->second.state() != v1::Probe::STATE_DISABLED) probe = found->second;
    *probe.mutable_counters() = found->second.counters();
  }
}

void TracingSession::DrainEnded() {
  pump_->WaitAllGone(kDrain);
}

bool TracingSession::Detach() {
  v1::DetachTargetRequest request;
  request.set_session(id_);
  bool all = true;
  for (const auto& target : targets_) {
    request.set_name(target.name());
    auto detached = api_.DetachTarget(request);
    all = all && detached && detached->detached();
    if (detached) {
      if (!detached->warning().empty()) talk_.Warn(detached->warning());
    } else if (!IsGone(detached.error())) {
      // A target that has exited is no longer there to be let go; nor is a daemon that has.
      NoteNotLeft(std::move(detached).error());
    }
  }
  return all;
}

// The first is for our caller to report.
void TracingSession::NoteNotLeft(RemoteError error) {
  if (not_left_) talk_.Fail(error);
  if (!not_left_) not_left_ = std::move(error);
}

Reply<void> TracingSession::Finish() {
  talk_.ClearStatus();
  if (pump_ == nullptr) {
    Detach();
    return Left();
  }
  if (!pump_->stream_ended()) {
    // Disabled first, so that the counters are final and agree with the events still under way. A
    // target that has just ended refuses; its counters stand still anyway.
    RememberProbes();
    (void)Switch(false);
    RememberProbes();
  }
  if (!pump_->stream_ended() && !pump_->all_gone()) {
    // Nobody wants the rest, which may be all that full rings hold.
    if (pump_->done()) static_cast<void>(pump_->Stop());
    if (targets_.empty()) DrainCounted();
    if (!targets_.empty()) pump_->WaitAllGone(Detach() ? kDrain : kSharedDrain);
  }
  if (!pump_->stream_ended()) DeleteInKernel();
  auto end = pump_->Stop();
  Summarize();
  return end ? Left() : end;
}

// The end of the stream would do it, too, but after we have gone.
void TracingSession::DeleteInKernel() {
  std::vector<std::string> names;
  for (const auto& probe : probes_)
    if (IsInKernel(probe)) names.push_back(probe.name());
  if (!names.empty()) static_cast<void>(api_.DeleteProbes(names));
}

// Without a target there is no notice to wait for; but the counters are final.
void TracingSession::DrainCounted() {
  uint64_t recorded = 0;
  for (const auto& probe : probes_)
    recorded += probe.counters().recorded();
  const auto deadline = std::chrono::steady_clock::now() + kDrain;
  while (pump_->hits() + pump_->lost() < recorded && !pump_->stream_ended() &&
         std::chrono::steady_clock::now() < deadline)
    pump_->WaitAllGone(kLook);
}

Reply<void> TracingSession::Left() {
  if (not_left_) return tl::unexpected(*std::exchange(not_left_, std::nullopt));
  return {};
}

void TracingSession::Summarize() {
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  talk_.Note(fmt::format("{} events in {:.1f} s, {} lost, {} probes", pump_->hits(),
                         elapsed.count(), pump_->lost(), probes_.size()));
  for (const auto& probe : probes_)
    talk_.Note(DescribeProbe(probe));
}

}  // namespace probed::client
