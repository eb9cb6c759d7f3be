#include "engine/engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine_state.h"
#include "engine/sys/proc.h"

namespace probed::engine {

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options) {
  auto state = std::make_unique<State>(options);
  PROBED_TRY(state->tracer, tracee::Tracer::Start(state->controller));
  state->tracer->Call([&] { state->controller.set_tracer(state->tracer.get()); });
  return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

Engine::~Engine() {
  for (const auto& target : ListTargets()) {
    if (target.state == TargetState::kRunning) (void)Detach(target.id);
  }
  state_->hub.Close();
  state_->tracer.reset();
}

std::unique_ptr<event::Subscription> Engine::Subscribe(event::SubscribeOptions options) {
  return state_->hub.Subscribe(std::move(options));
}

EngineInfo Engine::Info() {
  constexpr uint64_t kCapSysPtrace = 1ull << 19;
  constexpr uint64_t kCapSysAdmin = 1ull << 21;
  EngineInfo info{.mechanisms = {Mechanism::kBoosted, Mechanism::kUnoptimized},
                  .privileges = {},
                  .limits = state_->options,
                  .placement = state_->Run([this] { return state_->tracer->placement(); }),
                  .events_published = state_->hub.published()};
  auto self = sys::ReadTaskStatus(::getpid());
  uint64_t capabilities = self.ok() ? self->permitted_caps : 0;
  if ((capabilities & kCapSysPtrace) != 0) info.privileges.emplace_back("CAP_SYS_PTRACE");
  if ((capabilities & kCapSysAdmin) != 0) info.privileges.emplace_back("CAP_SYS_ADMIN");
  info.privileges.push_back(fmt::format("Yama ptrace_scope {}", sys::YamaScope()));
  return info;
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
