#include "engine/probe/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/probe/fault_signal.h"
#include "engine/probe/generated_code.h"
#include "engine/probe/image_stop.h"
#include "engine/probe/jump_batch.h"
#include "engine/probe/routines.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/shadow_stack.h"
#include "engine/probe/stop_deadline.h"
#include "engine/ring/clock.h"
#include "engine/tracee/thread.h"

namespace probed::probe {
namespace {

constexpr std::chrono::milliseconds kRetryDelay{100};
constexpr int kMaxRetries = 20;
// What shadow stacks hold is counted when it is over, or taken over: more than that is no exact
// limit.
constexpr uint32_t kFewReturns = 64 * ring::kShadowFrames;

// What nobody reads is only counted.
ring::ProbeMode ModeOf(const ProcessState& state, const Probe& probe, bool is_read) {
  if (!probe.enabled || state.leaving) return ring::kModeOff;
  return is_read ? ring::kModeRecord : ring::kModeCount;
}

void GiveUpAll(OptimizeJob& job, const std::string& why) {
  for (Candidate& candidate : job.candidates) {
    if (candidate.possible()) candidate.obstacle = why;
  }
}

}  // namespace

Optimizer::Optimizer(OptimizerOptions options, FileCache& files, event::Hub& hub,
                     event::Drainer& drainer)
    : options_(std::move(options)), files_(files), hub_(hub), drainer_(drainer) {}

Optimizer::~Optimizer() {
  Stop();
}

void Optimizer::set_tracer(tracee::Tracer* tracer) {
  tracer_ = tracer;
  if (!options_.planner) options_.planner = std::make_shared<FlowPlanner>();
  thread_ = std::thread([this] { Run(); });
}

void Optimizer::Stop() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Optimizer::Request(event::TargetId target) {
  std::lock_guard lock(mutex_);
  if (std::find(queue_.begin(), queue_.end(), target) != queue_.end()) return;
  queue_.push_back(target);
  changed_.notify_all();
}

void Optimizer::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return quit_ || !queue_.empty(); });
    if (quit_) return;
    event::TargetId target = queue_.front();
    queue_.pop_front();
    lock.unlock();
    Work(target);
    lock.lock();
  }
}

ProcessState* Optimizer::Find(event::TargetId target) const {
  tracee::Process* process = tracer_->Find(target.pid);
  ProcessState* state = process != nullptr ? ProcessState::Of(*process) : nullptr;
  return state != nullptr && state->id == target && !state->leaving ? state : nullptr;
}

// As the job found it, but that it may be leaving.
ProcessState* Optimizer::FindImage(const OptimizeJob& job) const {
  tracee::Process* process = tracer_->Find(job.target.pid);
  ProcessState* state = process != nullptr ? ProcessState::Of(*process) : nullptr;
  return state != nullptr && state->id == job.target && state->image == job.image ? state : nullptr;
}

std::string Optimizer::ObstacleOf(const Site& site) const {
  if (site.is_generated()) return std::string(kNoJumpInGeneratedCode);
  if (!options_.enabled) return "optimization is off";
  if (site.barred()) return site.reason();
  if (site.HasDisabledReturn()) return "a return probe here is disabled";
  if (site.has_hooks()) return "the engine itself needs a trap here";
  for (const auto& probe : site.probes()) {
    if (probe->hijacks() && probe->options.max_active < kFewReturns) {
      return "a small limit of outstanding returns is counted at a trap";
    }
    if (!probe->return_instructions.empty()) return "it stands on a ret instruction";
    if (!probe->options.optimize) return "a probe here is not to be optimized";
  }
  return "";
}

// Sites that could be better than boosted copies, those whose obstacle was just found included.
std::vector<Candidate> Optimizer::Collect(ProcessState& state) const {
  std::vector<Candidate> candidates;
  const std::string of_all = ShadowStackObstacle(state);
  for (Site* site : state.sites.Sorted()) {
    bool boosted = site->has_copy() && site->copy().boosted;
    if (!site->armed() || site->optimization() || !boosted || site->probes().empty()) continue;
    std::string obstacle = of_all.empty() ? ObstacleOf(*site) : of_all;
    site->set_obstacle(obstacle);
    if (!obstacle.empty()) continue;
    Candidate candidate;
    candidate.site = site->address();
    candidate.place = site->place();
    candidate.probes = site->probes();
    for (const auto& probe : candidate.probes)
      candidate.selections.push_back(probe->selection);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

Status Optimizer::MakeRing(tracee::Stopped& stopped, ProcessState& state) {
  if (state.ring) return {};
  PROBED_RETURN_IF_ERROR(PlaceRoutines(stopped, state));
  PROBED_TRY(state.ring, TargetRing::Create(stopped, state.id, watch_, options_.ring_bytes));
  AddToDrainer(state);
  return {};
}

void Optimizer::AddToDrainer(ProcessState& state) {
  state.ring->set_on_unknown_thread([this, target = state.id] { Request(target); });
  state.source = drainer_.Add(state.ring);
}

void Optimizer::ClaimIndices(ProcessState& state, OptimizeJob& job) {
  for (Candidate& candidate : job.candidates) {
    if (candidate.buffer.value == 0) continue;
    std::optional<uint32_t> first_return;
    for (const auto& probe : candidate.probes) {
      auto index = state.ring->Claim({.probe = probe->id,
                                      .kind = probe->definition->kind,
                                      .ip = candidate.site.value,
                                      .schema = probe->schema});
      if (!index.ok()) candidate.obstacle = index.error().message;
      if (!index.ok()) continue;
      candidate.indices.push_back(*index);
      if (!probe->is_return()) continue;
      if (!first_return) first_return = *index;
      state.ring->CountUnwoundBy(*index, *first_return);
    }
  }
}

// The shared memory, in which the code that is to be measured names addresses.
void Optimizer::Open(OptimizeJob& job) {
  ProcessState* state = Find(job.target);
  if (state == nullptr) return;
  auto open = [&](tracee::Stopped& stopped) -> Status {
    return state->image == job.image ? MakeRing(stopped, *state) : Status();
  };
  Status opened;
  if (!state->ring) opened = tracer_->WithOneStopped(state->process, kStopDeadline, open);
  if (!opened.ok()) return GiveUpAll(job, opened.error().message);
  if (!state->ring) return;
  job.memory = state->ring->memory(state->routines);
}

void Optimizer::Reserve(OptimizeJob& job) {
  ProcessState* state = FindImage(job);
  if (state == nullptr || state->leaving || !state->ring) return;
  job.daemon_trampoline = state->trampoline;
  std::vector<tracee::WantedCode> wanted = job.WantedBuffers();
  Status reserved =
      tracee::ReserveCode(state->process.arena(), wanted, StopOfImage(*tracer_, *state, job.image));
  if (FindImage(job) != state) return GiveUpAll(job, "the process has gone on to another program");
  if (reserved.ok()) {
    job.SetBuffers(wanted);
    return ClaimIndices(*state, job);
  }
  tracee::FreeCode(state->process.arena(), wanted);
  GiveUpAll(job, reserved.error().message);
}

// What may be applied; what may not is given back.
std::vector<std::shared_ptr<Optimization>> Optimizer::TakeReady(OptimizeJob& job,
                                                                ProcessState& state) const {
  std::vector<std::shared_ptr<Optimization>> ready;
  for (Candidate& candidate : job.candidates) {
    Site* site = state.sites.Find(candidate.site);
    if (site != nullptr && !candidate.possible()) site->set_obstacle(candidate.obstacle);
    if (!candidate.optimization) continue;
    if (candidate.possible() && options_.enabled && !state.leaving) {
      ready.push_back(std::move(candidate.optimization));
    } else {
      state.Release(*candidate.optimization);
    }
  }
  return ready;
}

// All that can be done while the process runs: as yet no jump leads to these detours.
Status Optimizer::Prepare(ProcessState& state,
                          const std::vector<std::shared_ptr<Optimization>>& ready) {
  for (const auto& optimization : ready)
    SetModes(state, *optimization);
  const sys::ProcessMemory& memory = state.process.memory();
  if (memory.CanWriteRunning()) return WriteDetours(memory, 0, ready);
  return tracer_->WithOneStopped(state.process, kStopDeadline, [&](tracee::Stopped& stopped) {
    return WriteDetours(stopped.process().memory(), stopped.tid(), ready);
  });
}

// True: it may be worth to try again soon.
bool Optimizer::Apply(OptimizeJob& job) {
  ProcessState* state = FindImage(job);
  if (state == nullptr) return false;
  auto ready = TakeReady(job, *state);
  if (ready.empty()) return false;
  bool again = false;
  Status done = Prepare(*state, ready);
  if (FindImage(job) != state) return false;
  JumpPlan plan(*state, std::move(ready));
  auto apply = [&](std::vector<tracee::Stopped*>& threads) -> Status {
    if (state->image != job.image || state->leaving) return {};
    if (!ShadowStackObstacle(*state).empty()) return {};  // it has enabled one meanwhile
    LookAtFaultActions(*threads.front(), *state);
    for (tracee::Stopped* thread : threads)
      LookAt(*thread, *state);
    JumpBatch batch(threads, *state);
    auto optimized = batch.Optimize(plan);
    again = !optimized.ok() || *optimized;
    return {};
  };
  if (done.ok()) done = tracer_->WithAllStopped(state->process, kStopDeadline, apply);
  if (FindImage(job) != state) return again;  // it went, and its memory with it
  plan.Finish(done);
  return again;
}

// True: it may be worth to try again soon.
bool Optimizer::Try(event::TargetId target) {
  std::optional<OptimizeJob> job;
  tracer_->Call([&] {
    if (ProcessState* state = Find(target)) {
      SettleOrphans(*state);
    }
    if (ProcessState* state = Find(target)) {  // it may have gone meanwhile
      Settle(*state);
      job.emplace(target, state->image, Collect(*state));
    }
  });
  LookAtThreads(target);
  if (!job || !job->HasWork()) return false;
  auto space = AddressSpace::Read(target.pid);
  if (!space.ok()) return false;
  job->Plan(*space, files_, *options_.planner);
  if (job->HasWork()) tracer_->Call([&] { Open(*job); });
  job->Measure();
  if (job->HasWork()) tracer_->Call([&] { Reserve(*job); });
  job->Assemble();
  bool again = false;
  tracer_->Call([&] { again = Apply(*job); });
  return again;
}

void Optimizer::Work(event::TargetId target) {
  bool again = Try(target);
  if (!again || ++retries_[target] > kMaxRetries) {
    retries_.erase(target);
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kRetryDelay, [&] { return quit_; });
  if (std::find(queue_.begin(), queue_.end(), target) == queue_.end()) queue_.push_back(target);
}

Status Optimizer::Unoptimize(std::vector<tracee::Stopped*>& threads, ProcessState& state,
                             std::span<Site* const> sites) {
  JumpBatch batch(threads, state);
  Status undone = batch.Unoptimize(sites, hits_->Evaluator(), hits_->returns());
  // When the program runs again.
  tracer_->Post([this, target = state.id] {
    tracee::Process* process = tracer_->Find(target.pid);
    ProcessState* found = process != nullptr ? ProcessState::Of(*process) : nullptr;
    if (found != nullptr && found->id == target) Settle(*found);
  });
  return undone;
}

void Optimizer::Settle(ProcessState& state) {
  if (!state.HasRetired()) return;
  drainer_.Count();
  state.CountDetours();
  state.ReleaseRetired();
}

void Optimizer::SettleOrphans(ProcessState& state) {
  if (!state.HasOrphans()) return;
  auto retire = [&](std::vector<tracee::Stopped*>& threads) -> Status {
    if (threads.size() < state.process.threads().size()) return {};
    std::vector<RemoteAddr> ips;
    for (tracee::Stopped* thread : threads)
      ips.push_back(IpInDetour(*thread, state));
    state.RetireOrphans(ips);
    return {};
  };
  (void)tracer_->WithAllStopped(state.process, kStopDeadline, retire);
}

void Optimizer::Bar(ProcessState& state, RemoteAddr address, const std::string& why) {
  Site* site = state.sites.Find(address);
  if (site == nullptr || (site->barred() && !site->optimization())) return;
  site->Bar(why);  // once more, if a thread that could not be stopped was in the way
  tracer_->Post([this, target = state.id, address] {
    ProcessState* found = Find(target);
    const Site* optimized = found != nullptr ? found->sites.Find(address) : nullptr;
    if (optimized == nullptr || !optimized->optimization()) return;
    (void)tracer_->WithAllStopped(found->process, kStopDeadline,
                                  [&](std::vector<tracee::Stopped*>& threads) -> Status {
                                    Site* barred = found->sites.Find(address);
                                    if (barred == nullptr || !barred->optimization()) return {};
                                    return Unoptimize(threads, *found, {&barred, 1});
                                  });
  });
}

Status Optimizer::SetEnabled(bool enabled) {
  options_.enabled = enabled;
  Status result;
  for (tracee::Process* process : tracer_->processes()) {
    ProcessState* state = ProcessState::Of(*process);
    if (state == nullptr) continue;
    if (enabled) {
      Request(state->id);
      continue;
    }
    auto undo = [&](std::vector<tracee::Stopped*>& threads) -> Status {
      std::vector<Site*> optimized = state->sites.Optimized();
      PROBED_RETURN_IF_ERROR(Unoptimize(threads, *state, optimized));
      (void)Collect(*state);  // says why they are what they are
      return {};
    };
    Status undone = tracer_->WithAllStopped(*process, kStopDeadline, undo);
    if (!undone.ok() && undone.error().code != ErrorCode::kNotFound) result = std::move(undone);
  }
  return result;
}

void Optimizer::SyncModes() {
  for (tracee::Process* process : tracer_->processes()) {
    if (ProcessState* state = ProcessState::Of(*process)) SyncModes(*state);
  }
}

void Optimizer::SyncModes(ProcessState& state) {
  if (!state.ring) return;
  for (const Site* site : state.sites.Optimized())
    SetModes(state, *site->optimization());
}

void Optimizer::SetModes(ProcessState& state, const Optimization& optimization) const {
  bool is_read = hub_.subscribers() > 0;
  for (size_t i = 0; i < optimization.indices.size(); ++i)
    state.ring->SetMode(optimization.indices[i], ModeOf(state, *optimization.probes[i], is_read));
}

// A thread that has its parent's fs base still, and shares its memory for good, will set its own
// (Go): until then nobody can tell them apart.
void Optimizer::NoteThread(tracee::Stopped& stopped, ProcessState& state) {
  uint64_t base = stopped.regs().fs_base;
  tracee::Thread& thread = stopped.thread();
  ThreadHistory& history = state.ring->threads();
  std::optional<pid_t> owner = history.Owner(base);
  if (owner == thread.tid()) return;
  if (thread.role() == tracee::Thread::Role::kMemorySharer) {
    return history.Borrow(base, thread.tid(), ring::ReadTsc());
  }
  auto found = owner ? state.process.threads().find(*owner) : state.process.threads().end();
  bool is_parents = found != state.process.threads().end() &&
                    (!found->second->stopped() || found->second->Token().regs().fs_base == base);
  if (!is_parents) history.Begin(base, thread.tid(), ring::ReadTsc());
}

// Who it is, and where its returns are hijacked.
void Optimizer::LookAt(tracee::Stopped& stopped, ProcessState& state) {
  NoteThread(stopped, state);
  KnowThread(stopped, state);
}

void Optimizer::OnThreadStart(tracee::Stopped& stopped, ProcessState& state) {
  if (!state.ring) return;
  MeetThread(stopped, state);
  NoteThread(stopped, state);
}

void Optimizer::OnThreadExit(ProcessState& state, pid_t tid) {
  if (state.ring) state.ring->threads().End(tid, ring::ReadTsc());
}

// A thread that has set its fs base itself.
void Optimizer::LookAtThreads(event::TargetId target) {
  tracer_->Call([&] {
    ProcessState* state = Find(target);
    if (state == nullptr || !state->ring || !state->ring->TakeUnknownThread()) return;
    (void)tracer_->WithAllStopped(state->process, kStopDeadline,
                                  [&](std::vector<tracee::Stopped*>& threads) -> Status {
                                    if (!state->ring) return {};
                                    for (tracee::Stopped* thread : threads)
                                      LookAt(*thread, *state);
                                    return {};
                                  });
  });
}

void Optimizer::OnFork(tracee::Stopped& child, ProcessState& state, const ProcessState& parent) {
  if (!parent.ring) return;
  auto ring = parent.ring->Fork(child, state.id);
  if (ring.ok()) {
    state.ring = std::move(ring).value();
    AddToDrainer(state);
    LookAt(child, state);
    return;
  }
  std::vector<tracee::Stopped*> threads{&child};
  (void)Unoptimize(threads, state, state.sites.Optimized());
}

void Optimizer::EndRing(ProcessState& state) {
  if (!state.ring) return;
  drainer_.Remove(std::exchange(state.source, event::kNoSource));
  state.CountDetours();
  state.MissReturns();
  state.ring->Close();
  state.ring = nullptr;
}

}  // namespace probed::probe
