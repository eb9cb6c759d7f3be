#include "engine/engine.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine_state.h"
#include "engine/privileges.h"
#include "engine/sys/pidfd.h"

namespace probed::engine {

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  std::shared_ptr<probe::PatchJournal> patches;
  // A handler that waits for an heir who is not let in would wait forever.
  if (options.patch_journal >= 0 && HeirsMayAttach(ReadPrivileges())) {
    PROBED_TRY(patches, probe::PatchJournal::Create(options.patch_journal));
  }
  auto state = std::make_unique<State>(options, std::move(patches));
  PROBED_TRY(state->tracer, tracee::Tracer::Start(state->controller));
  state->tracer->Call([&] { state->controller.set_tracer(state->tracer.get()); });
  state->hub.set_on_deserted([state = state.get()] {
    state->tracer->Post([state] { state->controller.optimizer().SyncModes(); });
  });
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Engine::~Engine() {
  for (const auto& target : ListTargets()) {
    if (target.state == TargetState::kRunning) (void)Detach(target.id);
  }
  state_->controller.optimizer().Stop();
  state_->hub.Close();
  state_->tracer.reset();
}

std::unique_ptr<event::Subscription> Engine::Subscribe(event::SubscribeOptions options) {
  auto subscription = state_->hub.Subscribe(std::move(options));
  state_->Run([&] {
    state_->controller.optimizer().SyncModes();
    return true;
  });
  return subscription;
}

EngineInfo Engine::Info() {
  EngineInfo info{
      .mechanisms = {Mechanism::kOptimized, Mechanism::kBoosted, Mechanism::kUnoptimized},
      .privileges = Describe(ReadPrivileges()),
      .limits = state_->options,
      .placement = state_->Run([this] { return state_->tracer->placement(); }),
      .events_published = state_->hub.published()};
  const auto tracefs = kernel::Tracefs::Find();
  if (tracefs.ok()) {
    info.mechanisms.push_back(Mechanism::kKernel);
  } else {
    info.privileges.push_back("no probes in the kernel: " + tracefs.error().message);
  }
  return info;
}

Result<void> Engine::SetOptimization(bool enabled) {
  std::lock_guard lock(state_->control);
  return state_->Run([&] { return state_->controller.optimizer().SetEnabled(enabled); });
}

bool Engine::optimization() {
  return state_->Run([&] { return state_->controller.optimizer().enabled(); });
}

pid_t Engine::tracer() const {
  return state_->tracer->tid();
}

Result<UniqueFd> Engine::TracerEnd() {
  return sys::OpenEndOfThread(tracer());
}

bool Engine::Healthy(std::chrono::milliseconds budget) {
  struct Answer {
    std::mutex mutex;
    std::condition_variable changed;
    bool given = false;
  };
  auto answer = std::make_shared<Answer>();  // outlives a caller that has stopped waiting
  state_->tracer->Post([answer] {
    std::lock_guard lock(answer->mutex);
    answer->given = true;
    answer->changed.notify_all();
  });
  std::unique_lock lock(answer->mutex);
  return answer->changed.wait_for(lock, budget, [&] { return answer->given; });
}

}  // namespace probed::engine
