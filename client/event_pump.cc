#include "client/event_pump.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <span>
#include <utility>

#include "base/plural.h"

namespace probed::client {

EventPump::EventPump(std::unique_ptr<EventStream> stream, Options options, EventWriter& writer,
                     Output& output, Talk& talk)
    : stream_(std::move(stream)),
      options_(std::move(options)),
      writer_(writer),
      output_(output),
      talk_(talk),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

EventPump::~EventPump() {
  if (thread_.joinable()) static_cast<void>(Stop());
}

void EventPump::Run() {
  v1::WatchEventsResponse response;
  while (stream_->Read(response))
    Take(response);
  Flush();
  if (lost_ != warned_) WarnOfLosses();
  if (unwound_ != noted_unwound_) NoteUnwound();
  end_ = stream_->Finish();
  stream_ended_ = true;
  done_ = true;
  Wake();
}

void EventPump::Take(const v1::WatchEventsResponse& response) {
  for (const auto& schema : response.schemas())
    schemas_.Add(schema);
  for (const auto& event : response.events())
    TakeEvent(event);
  AddCounts();
  Flush();
  std::lock_guard lock(mutex_);
  subscribed_ = true;
  changed_.notify_all();
}

void EventPump::TakeEvent(const v1::Event& event) {
  switch (event.kind_case()) {
    case v1::Event::kHit:
      TakeMessage(event);
      break;
    case v1::Event::kHitBlock:
      TakeBlock(event.hit_block());
      break;
    case v1::Event::kLoss:
      TakeLoss(event);
      break;
    case v1::Event::kUnwound:
      TakeUnwound(event);
      break;
    case v1::Event::kTargetChange:
      if (!done_) writer_.AppendTargetChange(event, output_.buffer());
      TakeTargetChange(event.target_change());
      break;
    default:
      break;
  }
}

void EventPump::TakeMessage(const v1::Event& event) {
  const KnownSchema* schema = schemas_.Find(event.hit().schema_id());
  if (schema == nullptr) return;
  FromMessage(event, schema->schema, hit_);
  TakeHit(*schema);
}

void EventPump::TakeBlock(const v1::HitBlock& block) {
  lang::PackedHitReader reader(std::as_bytes(std::span(block.records())));
  while (const auto packed = reader.Next()) {
    const KnownSchema* schema = schemas_.Find(packed->header.probe);
    if (schema == nullptr) continue;
    FromPacked(*packed, schema->schema, hit_);
    TakeHit(*schema);
  }
}

// hit_, of that schema.
void EventPump::TakeHit(const KnownSchema& schema) {
  if (done_) return;
  writer_.AppendHit(hit_, schema, output_.buffer());
  output_.Commit();
  ++new_hits_[hit_.head.probe];
  uint64_t hits = ++hits_;
  if (options_.count != 0 && hits >= options_.count) {
    done_ = true;
    Wake();
  }
}

void EventPump::TakeLoss(const v1::Event& event) {
  if (done_) return;
  lost_ += event.loss().lost();
  writer_.AppendLoss(event, output_.buffer());
  if (std::chrono::steady_clock::now() >= next_warning_) WarnOfLosses();
}

// A flood has hundreds of losses a second.
void EventPump::WarnOfLosses() {
  constexpr std::chrono::seconds kPeriod{1};
  next_warning_ = std::chrono::steady_clock::now() + kPeriod;
  warned_ = lost_;
  talk_.Warn(fmt::format("{} lost up to now: they came faster than they were read",
                         Plural(warned_, "event")));
}

void EventPump::TakeUnwound(const v1::Event& event) {
  const KnownSchema* schema = schemas_.Find(event.unwound().schema_id());
  if (schema == nullptr || done_) return;
  unwound_ += event.unwound().calls();
  writer_.AppendUnwound(event, *schema, output_.buffer());
  if (std::chrono::steady_clock::now() >= next_note_) NoteUnwound();
}

void EventPump::NoteUnwound() {
  constexpr std::chrono::seconds kPeriod{1};
  next_note_ = std::chrono::steady_clock::now() + kPeriod;
  noted_unwound_ = unwound_;
  talk_.Note(fmt::format("{} unwound up to now: left without a return", Plural(unwound_, "call")));
}

// Before anybody is told that a target has ended.
void EventPump::AddCounts() {
  std::lock_guard lock(mutex_);
  for (const auto& [schema, hits] : new_hits_)
    hits_of_[schema] += hits;
  new_hits_.clear();
}

uint64_t EventPump::HitsOf(uint64_t schema) {
  std::lock_guard lock(mutex_);
  const auto found = hits_of_.find(schema);
  return found == hits_of_.end() ? 0 : found->second;
}

void EventPump::TakeTargetChange(const v1::TargetChange& change) {
  if (change.change() == v1::TargetChange::CHANGE_SITE_GONE && !done_)
    talk_.Warn(fmt::format("a probe is gone: {}", change.detail()));
  if (change.change() != v1::TargetChange::CHANGE_EXITED &&
      change.change() != v1::TargetChange::CHANGE_DETACHED) {
    return;
  }
  AddCounts();
  StopWaitingFor(change.target(), change.change());
  Wake();
}

void EventPump::StopWaitingFor(const std::string& target, v1::TargetChange::Change why) {
  std::lock_guard lock(mutex_);
  if (options_.targets.erase(target) == 0) return;
  const bool let_go = why == v1::TargetChange::CHANGE_DETACHED;
  left_.push_back({target, let_go});
  if (let_go) let_go_ = true;
  if (options_.targets.empty()) all_gone_ = true;
}

void EventPump::Expect(const std::string& target) {
  std::lock_guard lock(mutex_);
  options_.targets.insert(target);
  all_gone_ = false;
}

std::vector<EventPump::Left> EventPump::TakeLeft() {
  std::lock_guard lock(mutex_);
  return std::exchange(left_, {});
}

void EventPump::NoteExited(const std::string& target) {
  StopWaitingFor(target, v1::TargetChange::CHANGE_EXITED);
  Wake();
}

void EventPump::Flush() {
  if (output_.is_terminal() && !output_.buffer().empty()) talk_.ClearStatus();
  output_.Flush();
  if (output_.closed() && !done_) {
    done_ = true;
    Wake();
  }
}

void EventPump::Wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(wake_.get(), &one, sizeof one);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void EventPump::ClearWake() {
  uint64_t count;
  [[maybe_unused]] ssize_t got = ::read(wake_.get(), &count, sizeof count);
}

bool EventPump::WaitSubscribed() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return subscribed_ || stream_ended_; });
  return subscribed_;
}

bool EventPump::WaitAllGone(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return all_gone_ || stream_ended_; });
}

bool EventPump::WaitEnded(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return stream_ended_.load(); });
}

Reply<void> EventPump::Stop() {
  constexpr std::chrono::milliseconds kPatience{500};
  stream_->Cancel();
  if (!WaitEnded(kPatience)) {
    talk_.Note(
        "our output is read slowly: what was received of the events is still being written; Ctrl-C "
        "gives up the rest");
  }
  if (thread_.joinable()) thread_.join();
  return end_;
}

}  // namespace probed::client
