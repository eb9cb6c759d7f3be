#include "engine/probe/process_state.h"

#include <utility>

namespace probed::probe {

ThreadState& ThreadState::Of(tracee::Thread& thread) {
  if (thread.extension() == nullptr) thread.set_extension(std::make_unique<ThreadState>());
  return static_cast<ThreadState&>(*thread.extension());
}

ProcessState::ProcessState(tracee::Process& traced, std::shared_ptr<ProbeGroup> probe_group)
    : process(traced),
      id{.pid = traced.pid(), .start_ticks = traced.start_ticks()},
      group(std::move(probe_group)) {
  group->processes.push_back(this);
}

ProcessState::~ProcessState() {
  ForgetMemory();
  std::erase(group->processes, this);
}

ProcessState* ProcessState::Of(tracee::Process& process) {
  return static_cast<ProcessState*>(process.extension());
}

void ProcessState::ForgetMemory() {
  for (Site* site : sites.Sorted())
    site->ForgetPatch();
  sites.Clear();
  trampoline = {};
  loading = false;
  stacks_migrate = false;
  unwinders_seen.clear();
  for (const auto& [tid, thread] : process.threads())
    thread->set_extension(nullptr);
}

}  // namespace probed::probe
