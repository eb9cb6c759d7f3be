#pragma once
// Turns breakpoints into jumps when that is proven safe, and back. A thread of its own analyses
// files and assembles detours; the tracer thread then changes all sites of a process in one stop.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/event/drainer.h"
#include "engine/probe/file_cache.h"
#include "engine/probe/hit_handler.h"
#include "engine/probe/optimize_job.h"
#include "engine/probe/patch_planner.h"
#include "engine/probe/process_state.h"
#include "engine/sys/robust_list.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

struct OptimizerOptions {
  bool enabled = true;
  uint64_t ring_bytes = 64u << 20;  // of each process, over all CPUs
  std::shared_ptr<PatchPlanner> planner;
};

class Optimizer {
 public:
  Optimizer(OptimizerOptions options, FileCache& files, event::Hub& hub, event::Drainer& drainer);
  ~Optimizer();
  void set_hits(HitHandler* hits) { hits_ = hits; }
  // Starts the thread.
  void set_tracer(tracee::Tracer* tracer);
  // Ends it. Before the tracer ends; not on its thread.
  void Stop();

  // Any thread. What has become possible in the process is done soon.
  void Request(event::TargetId target);

  // The rest: tracer thread.

  bool enabled() const { return options_.enabled; }
  // Changes the sites that exist as well. Outside observer callbacks.
  Status SetEnabled(bool enabled);

  // What keeps a site from being optimized, whatever its code is; empty: nothing.
  std::string ObstacleOf(const Site& site) const;

  // All threads of the process are stopped.
  Status Unoptimize(std::vector<tracee::Stopped*>& threads, ProcessState& state,
                    std::span<Site* const> sites);
  // The site stays a breakpoint for as long as the image lives. May be called in a callback: it
  // happens right after.
  void Bar(ProcessState& state, RemoteAddr site, const std::string& why);
  // Detours do what the probes' states, and the presence of subscribers, ask for.
  void SyncModes();
  void SyncModes(ProcessState& state);

  // What was recorded by detours that are retired is counted, and they are given back.
  void Settle(ProcessState& state);
  // The same for sites that were unmapped, once no thread is on its way out of them. Outside
  // observer callbacks.
  void SettleOrphans(ProcessState& state);
  void OnThreadStart(tracee::Stopped& stopped, ProcessState& state);
  void OnThreadExit(ProcessState& state, pid_t tid);
  // A child whose sites are copies of its parent's gets memory of its own, or breakpoints.
  void OnFork(tracee::Stopped& child, ProcessState& state, const ProcessState& parent);
  // The image has ended, or no detour is left in it.
  void EndRing(ProcessState& state);

 private:
  void Run();
  void Work(event::TargetId target);
  bool Try(event::TargetId target);
  ProcessState* Find(event::TargetId target) const;
  ProcessState* FindImage(const OptimizeJob& job) const;
  std::vector<Candidate> Collect(ProcessState& state) const;
  void Open(OptimizeJob& job);
  void Reserve(OptimizeJob& job);
  Status MakeRing(tracee::Stopped& stopped, ProcessState& state);
  std::vector<std::shared_ptr<Optimization>> TakeReady(OptimizeJob& job, ProcessState& state) const;
  bool Apply(OptimizeJob& job);
  Status Prepare(ProcessState& state, const std::vector<std::shared_ptr<Optimization>>& ready);
  void SetModes(ProcessState& state, const Optimization& optimization) const;
  static void ClaimIndices(ProcessState& state, OptimizeJob& job);
  void AddToDrainer(ProcessState& state);
  void LookAtThreads(event::TargetId target);
  static void NoteThread(tracee::Stopped& stopped, ProcessState& state);
  static void LookAt(tracee::Stopped& stopped, ProcessState& state);

  OptimizerOptions options_;
  FileCache& files_;
  event::Hub& hub_;
  event::Drainer& drainer_;
  HitHandler* hits_ = nullptr;
  tracee::Tracer* tracer_ = nullptr;
  sys::RobustList watch_;                   // registered by the tracer thread
  std::map<event::TargetId, int> retries_;  // worker thread only; of those that are queued again

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<event::TargetId> queue_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace probed::probe
