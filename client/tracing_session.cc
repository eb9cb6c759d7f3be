#include "client/tracing_session.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/plural.h"
#include "client/words.h"
#include "engine/lang/definition_set.h"

namespace probed::client {
namespace {

// After a detach was answered, the notice of it is on its way behind the last events.
constexpr std::chrono::milliseconds kDrain{2000};
// Other sessions still hold the target: no notice will come, only events that are under way.
constexpr std::chrono::milliseconds kSharedDrain{100};
constexpr std::chrono::milliseconds kLook{10};
// Of probes that are slow, one by one.
constexpr size_t kMostTold = 3;

std::string NewSessionId() {
  uint64_t random = 0;
  [[maybe_unused]] ssize_t got = ::getrandom(&random, sizeof random, 0);
  return fmt::format("probectl-{}-{:016x}", ::getpid(), random);
}

bool IsGone(const RemoteError& remote) {
  return remote.error.code == ErrorCode::kNotFound || remote.error.code == ErrorCode::kUnavailable;
}

}  // namespace

bool HasEnded(const RemoteError& refusal) {
  const std::string& reason = refusal.error.reason;
  return reason == "TARGET_NOT_FOUND" || reason == "PROCESS_NOT_FOUND" ||
         reason == "PROCESS_GONE" || reason == "ZOMBIE";
}

namespace {

constexpr char kKernel[] = "targets/kernel";

bool IsIn(const v1::Probe& probe, const std::string& target) {
  return probe.name().starts_with(target + "/");
}

std::vector<std::string> NamesOf(const std::vector<v1::Probe>& probes) {
  std::vector<std::string> names;
  for (const auto& probe : probes)
    names.push_back(probe.name());
  return names;
}

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

}  // namespace

TracingSession::TracingSession(Api& api, Talk& talk)
    : api_(api),
      talk_(talk),
      id_(NewSessionId()),
      started_(std::chrono::steady_clock::now()),
      unseen_returns_(talk) {}

Reply<v1::Target> TracingSession::Attach(v1::AttachTargetRequest request) {
  request.set_session(id_);
  auto target = api_.AttachTarget(request);
  if (target) targets_.push_back(*target);
  return target;
}

Reply<void> TracingSession::Define(v1::CreateProbesRequest request) {
  request.set_session(id_);
  if (targets_.empty()) return DefineIn(kKernel, std::move(request));
  const std::vector<v1::Target> targets = targets_;
  for (const auto& target : targets) {
    auto defined = DefineIn(target.name(), request);
    if (defined) {
      TakeKernelLines(request);
    } else if (HasEnded(defined.error()) && targets_.size() > 1) {
      GiveUp(target);
    } else {
      return defined;
    }
  }
  later_ = std::move(request);
  return {};
}

// Before the stream runs.
void TracingSession::GiveUp(const v1::Target& target) {
  talk_.Note(fmt::format("{} ({}) has ended meanwhile", target.pid(), target.comm()));
  std::erase_if(targets_, [&](const v1::Target& one) { return one.name() == target.name(); });
}

Reply<void> TracingSession::Join(const v1::Process& process, v1::AttachTargetRequest request) {
  const auto is_known = [&](const v1::Target& target) {
    return target.pid() == process.pid() && target.start_ticks() == process.start_ticks();
  };
  if (std::any_of(targets_.begin(), targets_.end(), is_known)) return {};
  request.set_pid(process.pid());
  auto target = Attach(std::move(request));
  if (!target) {
    if (IsGone(target.error())) return {};
    return tl::unexpected(std::move(target).error());
  }
  pump_->Expect(target->name());
  auto defined = DefineLater(*target);
  if (defined) {
    talk_.Note(fmt::format("joined {} ({})", target->pid(), target->comm()));
    return {};
  }
  pump_->NoteExited(target->name());
  if (IsGone(defined.error())) return {};
  Forget(target->name());
  return defined;
}

// Disabled first: the stream knows them only when they are there.
Reply<void> TracingSession::DefineLater(const v1::Target& target) {
  const size_t before = probes_.size();
  later_.set_disabled(true);
  if (auto defined = DefineIn(target.name(), later_); !defined) return defined;
  return Switch(NamesOf({probes_.begin() + static_cast<ptrdiff_t>(before), probes_.end()}), true);
}

void TracingSession::CollectEnded() {
  for (const auto& left : pump_->TakeLeft()) {
    for (const auto& target : targets_)
      if (target.name() == left.target)
        talk_.Note(fmt::format("{} ({}) {}", target.pid(), target.comm(),
                               left.let_go ? "was let go by another client" : "ended"));
    RememberProbes({left.target});
    Forget(left.target);
  }
}

void TracingSession::Forget(const std::string& target) {
  v1::DetachTargetRequest request;
  request.set_session(id_);
  request.set_name(target);
  static_cast<void>(api_.DetachTarget(request));  // of one that has ended: no holder any more
  for (const auto& probe : probes_)
    if (IsIn(probe, target)) AddTo(past_, TotalOf(probe));
  std::erase_if(probes_, [&](const v1::Probe& probe) { return IsIn(probe, target); });
  past_targets_ +=
      std::erase_if(targets_, [&](const v1::Target& one) { return one.name() == target; });
}

Reply<void> TracingSession::DefineIn(const std::string& parent, v1::CreateProbesRequest request) {
  if (request.definitions().empty()) return {};
  request.set_parent(parent);
  auto created = api_.CreateProbes(request);
  if (!created) return tl::unexpected(std::move(created).error());
  unseen_returns_.WarnOf(*created);
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
  request.set_follow_session(others_come_);
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
  for (const auto& parent : Parents()) {
    auto switched = Switch(NamesIn(parent), true);
    // Of one that has ended the stream tells.
    if (!switched && !IsGone(switched.error())) return switched;
  }
  return {};
}

// A target that has just ended refuses: the others are disabled all the same.
void TracingSession::Disable() {
  for (const auto& parent : Parents())
    static_cast<void>(Switch(NamesIn(parent), false));
}

std::vector<std::string> TracingSession::NamesIn(const std::string& parent) const {
  std::vector<std::string> names;
  for (const auto& probe : probes_)
    if (IsIn(probe, parent)) names.push_back(probe.name());
  return names;
}

Reply<void> TracingSession::Switch(const std::vector<std::string>& names, bool enabled) {
  if (names.empty()) return {};
  auto switched = api_.SetProbesEnabled(names, enabled);
  if (!switched) return tl::unexpected(std::move(switched).error());
  return {};
}

// The last word on each probe; what a target that is gone cannot tell stays as it was.
void TracingSession::RememberProbes(const std::vector<std::string>& parents) {
  for (const auto& parent : parents) {
    auto listed = api_.ListProbes(parent);
    if (!listed) continue;
    std::map<std::string, v1::Probe> known;
    for (auto& probe : *listed)
      known.emplace(probe.name(), std::move(probe));
    for (auto& probe : probes_)
      if (IsIn(probe, parent)) RememberOne(probe, known);
  }
}

void TracingSession::RememberOne(v1::Probe& probe, const std::map<std::string, v1::Probe>& known) {
  const auto found = known.find(probe.name());
  if (found == known.end()) {
    deleted_.insert(probe.name());
    return;
  }
  // Whether it ever was armed is worth more than that we have just disabled it.
  if (found->second.state() != v1::Probe::STATE_DISABLED) probe = found->second;
  *probe.mutable_counters() = found->second.counters();
}

void TracingSession::TellSlowProbes() {
  constexpr int kMostLooks = 20;
  if (all_decided_ || slow_.size() > kMostTold || ++looks_ > kMostLooks) return;
  all_decided_ = !others_come_;
  for (const auto& parent : Parents()) {
    if (parent == kKernel) continue;
    auto listed = api_.ListProbes(parent);
    if (!listed) continue;
    for (const auto& probe : *listed) {
      if (probe.undecided() || probe.state() == v1::Probe::STATE_PENDING) all_decided_ = false;
      TellIfSlow(probe);
    }
  }
}

void TracingSession::TellIfSlow(const v1::Probe& probe) {
  const bool is_trap =
      probe.mechanism() == v1::MECHANISM_BOOSTED || probe.mechanism() == v1::MECHANISM_UNOPTIMIZED;
  // Of processes that come and go one stands for all.
  const std::string key = others_come_ ? probe.definition() + probe.reason() : probe.name();
  const bool is_told = slow_.size() > kMostTold || slow_.contains(key);
  if (!is_trap || is_told || probe.undecided() || probe.no_optimization() ||
      probe.state() != v1::Probe::STATE_ARMED)
    return;
  const bool is_ours = std::any_of(probes_.begin(), probes_.end(), [&](const v1::Probe& one) {
    return one.name() == probe.name();
  });
  if (!is_ours) return;
  slow_.insert(key);
  if (slow_.size() > kMostTold) {
    talk_.Note("more probes are not jumps: 'probectl explain PLACE' tells why");
    return;
  }
  talk_.Note(fmt::format("{}:{}/{}{} is no jump but {} ({}): {}",
                         probe.kind() == v1::PROBE_KIND_RETURN ? 'r' : 'p', probe.group(),
                         probe.event(), PlaceOf(probe), Meaning(probe.mechanism()),
                         Word(probe.mechanism()), probe.reason()));
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
    if (detached && !detached->detached()) held_.insert(target.name());
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
  if (!pump_->stream_ended()) {
    TellSlowProbes();
    // Disabled first, so that the counters are final and agree with the events still under way. A
    // target that has just ended refuses; its counters stand still anyway.
    if (others_come_) CollectEnded();
    RememberProbes(Parents());
    Disable();
    RememberProbes(Parents());
  }
  if (!pump_->stream_ended() && !pump_->all_gone()) {
    // Nobody wants the rest, which may be all that full rings hold.
    if (pump_->done()) static_cast<void>(pump_->Stop());
    if (targets_.empty()) DrainCounted();
    if (!targets_.empty()) pump_->WaitAllGone(Detach() ? kDrain : kSharedDrain);
  }
  // What was given up in between counts, too.
  if (!pump_->stream_ended()) RememberProbes(Parents());
  if (!pump_->stream_ended()) DeleteInKernel();
  auto end = pump_->Stop();
  daemon_ended_ = !end && end.error().error.code == ErrorCode::kUnavailable;
  if (daemon_ended_ && end.error().error.hint.empty())
    end.error().error.hint =
        "the daemon has ended; what it left in the targets its guard takes out";
  Summarize();
  return end ? Left() : end;
}

void TracingSession::Abandon() {
  Detach();
  DeleteInKernel();
  if (pump_ != nullptr) static_cast<void>(pump_->Stop());
  if (auto left = Left(); !left) talk_.Fail(left.error());
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

ProbeTotal TracingSession::TotalOf(const v1::Probe& probe) const {
  return {.probe = probe,
          .shown = pump_->HitsOf(probe.id()),
          .deleted = deleted_.contains(probe.name()),
          .orphan = daemon_ended_};
}

// A stream that was read too slowly to its end has not told us of all losses; the counters have.
uint64_t TracingSession::LostOfAll(const std::vector<ProbeTotal>& totals) const {
  uint64_t lost = 0;
  for (const auto& total : totals)
    if (!total.deleted && !total.orphan) lost += LostOf(total);
  return std::max(lost, pump_->lost());
}

void TracingSession::Summarize() {
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  const std::vector<ProbeTotal> totals = Totals();
  const uint64_t lost = LostOfAll(totals);
  std::string text = fmt::format("{} in {:.1f} s, {} lost, {}", Plural(pump_->hits(), "event"),
                                 elapsed.count(), lost, Plural(totals.size(), "probe"));
  if (others_come_) text += ", " + Plural(past_targets_ + targets_.size(), "process");
  talk_.Note(text);
  for (const auto& total : totals)
    talk_.Note(DescribeTotal(total, PlaceOf(total.probe)));
  if (lost > 0)
    talk_.Note(
        "  lost: came faster than they were read; --filter, --sample or --rate leave some out");
}

// Which of several targets, where each has a line of its own.
std::string TracingSession::PlaceOf(const v1::Probe& probe) const {
  if (others_come_ || targets_.size() < 2) return {};
  for (const auto& target : targets_)
    if (IsIn(probe, target.name())) return fmt::format(" in {} ({})", target.pid(), target.comm());
  return {};
}

std::vector<ProbeTotal> TracingSession::Totals() const {
  std::vector<ProbeTotal> totals = past_;
  for (const auto& probe : probes_) {
    if (others_come_)
      AddTo(totals, TotalOf(probe));
    else
      totals.push_back(TotalOf(probe));
  }
  return totals;
}

}  // namespace probed::client
