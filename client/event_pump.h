#pragma once
// Reads one event stream on a thread of its own, writes events out, and keeps count. The
// controlling thread polls fd() and asks.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/unique_fd.h"
#include "client/api.h"
#include "client/event_writer.h"
#include "client/output.h"
#include "client/talk.h"

namespace probed::client {

class EventPump {
 public:
  struct Options {
    uint64_t count = 0;             // stop writing after so many hits; 0: no limit
    std::set<std::string> targets;  // whose end we wait for; guarded by mutex_ once in the pump
  };

  // `writer`, `output` and `talk` are the pump's alone (but Talk) until Stop returns.
  EventPump(std::unique_ptr<EventStream> stream, Options options, EventWriter& writer,
            Output& output, Talk& talk);
  ~EventPump();  // stops
  EventPump(const EventPump&) = delete;
  EventPump& operator=(const EventPump&) = delete;

  // True once the daemon said that we are subscribed; false when the stream ended instead.
  bool WaitSubscribed();

  // Readable when done() or all_gone() may have changed.
  int fd() const { return wake_.get(); }
  void ClearWake();

  // No more will be written: the stream ended, the count was reached or the output closed.
  bool done() const { return done_; }
  bool stream_ended() const { return stream_ended_; }
  // Every target of Options has exited or was let go.
  bool all_gone() const { return all_gone_; }
  // Some of them were let go rather than exited.
  bool let_go() const { return let_go_; }
  bool WaitAllGone(std::chrono::milliseconds at_most);
  // Waits for the end of one more target, which has come later.
  void Expect(const std::string& target);
  // Targets that left the trace since the last time.
  struct Left {
    std::string target;
    bool let_go = false;  // rather than exited
  };
  std::vector<Left> TakeLeft();
  // No notice of this target's exit will come, because it came before we were subscribed.
  void NoteExited(const std::string& target);

  uint64_t hits() const { return hits_; }
  uint64_t lost() const { return lost_; }
  // Of hits(), those of one schema (Probe.id) in the batches that were taken.
  uint64_t HitsOf(uint64_t schema);

  // Cancels the stream, takes what is under way, joins the thread; returns how the stream ended.
  Reply<void> Stop();

 private:
  void Run();
  void Take(const v1::WatchEventsResponse& response);
  void TakeEvent(const v1::Event& event);
  void TakeMessage(const v1::Event& event);
  void TakeBlock(const v1::HitBlock& block);
  void TakeHit(const KnownSchema& schema);
  void TakeLoss(const v1::Event& event);
  void WarnOfLosses();
  void TakeUnwound(const v1::Event& event);
  void NoteUnwound();
  void AddCounts();
  void TakeTargetChange(const v1::TargetChange& change);
  void StopWaitingFor(const std::string& target, v1::TargetChange::Change why);
  void Flush();
  void Wake();
  bool WaitEnded(std::chrono::milliseconds at_most);

  std::unique_ptr<EventStream> stream_;
  Options options_;
  EventWriter& writer_;
  Output& output_;
  Talk& talk_;
  SchemaTable schemas_;
  Hit hit_;                                          // of the moment; kept for its memory
  std::unordered_map<uint64_t, uint64_t> new_hits_;  // by schema, since AddCounts
  uint64_t warned_ = 0;                              // losses that the user was told of
  std::chrono::steady_clock::time_point next_warning_{};
  uint64_t unwound_ = 0, noted_unwound_ = 0;  // calls; those that the user was told of
  std::chrono::steady_clock::time_point next_note_{};
  UniqueFd wake_;

  std::atomic<uint64_t> hits_ = 0;
  std::atomic<uint64_t> lost_ = 0;
  std::atomic<bool> done_ = false;
  std::atomic<bool> stream_ended_ = false;
  std::atomic<bool> all_gone_ = false;
  std::atomic<bool> let_go_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool subscribed_ = false;                         // guarded by mutex_
  std::vector<Left> left_;                          // guarded by mutex_
  std::unordered_map<uint64_t, uint64_t> hits_of_;  // by schema; guarded by mutex_
  Reply<void> end_;                                 // written by the thread before it ends

  std::thread thread_;
};

}  // namespace probed::client
