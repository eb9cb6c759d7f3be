#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/probe/salvage.h"
#include "engine/sys/proc.h"

namespace probed::engine {
namespace {

using probe::JournaledProcess;

constexpr std::chrono::milliseconds kAttachDeadline{5000};
// A child may be forked while its parent's memory still has what we are about to take out.
constexpr int kMostGenerations = 8;

bool IsAlive(const JournaledProcess& left) {
  auto stat = sys::ReadTaskStat(left.pid);
  return stat.ok() && stat->start_ticks == left.start_ticks && sys::IsAlive(left.pid);
}

uint32_t RestoreBreakpoints(const std::vector<JournaledProcess>& processes) {
  uint32_t sum = 0;
  for (const JournaledProcess& process : processes) {
    auto restored = probe::RestoreBreakpoints(process);
    if (restored.ok()) sum += *restored;
  }
  return sum;
}

}  // namespace

Result<DetachReport> Engine::SalvageOne(const JournaledProcess& left) {
  return state_->Run([&]() -> Result<DetachReport> {
    tracee::Process* process = state_->tracer->Find(left.pid);  // it was tried before
    if (process == nullptr) {
      PROBED_TRY(process, state_->tracer->Attach({.pid = left.pid, .deadline = kAttachDeadline}));
    }
    state_->controller.Adopt(*process, left);
    return state_->controller.Salvage(*process, left);
  });
}

// Breakpoints of all processes first, because that is quick; then one process after the other.
SalvageReport Engine::Salvage(int patch_journal) {
  SalvageReport sum;
  auto left = probe::ReadJournal(patch_journal);
  if (!left.ok()) {
    sum.errors.push_back(std::move(left).error());
    return sum;
  }
  std::vector<JournaledProcess> all = std::move(left).value();
  std::vector<JournaledProcess> now = all;
  for (int i = 0; i < kMostGenerations && !now.empty(); ++i) {
    sum.sites += RestoreBreakpoints(now);
    for (const JournaledProcess& process : now) {
      if (!IsAlive(process)) continue;
      auto report = SalvageOne(process);
      if (!report.ok()) {
        if (IsAlive(process)) sum.errors.push_back(std::move(report).error());
        continue;
      }
      ++sum.processes;
      sum.sites += report->sites_restored;
      sum.returns += report->returns_restored;
    }
    now = probe::FindForks(all);
    all.insert(all.end(), now.begin(), now.end());
  }
  if (!sum.errors.empty()) return sum;
  for (const JournaledProcess& process : all) {
    Status struck = probe::StrikeOut(patch_journal, process);
    if (!struck.ok()) sum.errors.push_back(std::move(struck).error());
  }
  return sum;
}

}  // namespace probed::engine
