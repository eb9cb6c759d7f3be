#include <fmt/format.h>
#include <unistd.h>

#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/probe/displacement.h"
#include "engine/probe/flow_source.h"
#include "engine/probe/flow_statistics.h"
#include "engine/sys/proc.h"

namespace probed::engine {
namespace {

PlanShareInfo ToInfo(const probe::PlanShare& share) {
  return {.mechanism = share.mechanism,
          .tactic = std::string(arch::TacticName(share.tactic)),
          .rule = std::string(share.rule),
          .functions = share.functions,
          .instructions = share.instructions};
}

struct NamedFile {
  std::string path;
  std::shared_ptr<const elf::File> file;
};

Result<NamedFile> OpenFile(probe::FileCache& files, Result<probe::AddressSpace> space, int pid,
                           const std::string& path) {
  if (!space.ok()) return space.error();
  PROBED_TRY(auto reference, space->Resolve(path));
  PROBED_TRY(auto file, files.Open(reference, sys::ProcPath(pid, "root")));
  return NamedFile{reference.path, file};
}

}  // namespace

Result<JumpExplanation> Engine::ExplainJump(std::optional<TargetId> target, const std::string& path,
                                            uint64_t offset) {
  int pid = target ? target->pid : ::getpid();
  auto space = target ? state_->ReadSpace(*target) : probe::AddressSpace::Read(pid);
  PROBED_TRY(auto named, OpenFile(state_->files, std::move(space), pid, path));
  JumpExplanation explanation;
  auto address = named.file->ToLinkAddr(FileOffset{offset});
  if (!address.has_value()) return explanation;
  PROBED_TRY(auto flow, probe::AnalyzeFlow(*named.file));
  arch::PatchPlan plan = flow->Plan(address->value);
  explanation.tactic = arch::TacticName(plan.tactic);
  for (const arch::Instruction& instruction : plan.region)
    explanation.region.push_back(instruction.text);
  explanation.no_jump = std::move(plan.why);
  if (plan.tactic == arch::Tactic::kNone) return explanation;
  const auto rule = probe::RuleAgainstDisplacing(*named.file, plan.region);
  if (rule.empty()) return explanation;
  explanation.tactic.clear();
  explanation.no_jump = rule.why;
  return explanation;
}

Result<FileExplanation> Engine::ExplainFile(std::optional<TargetId> target,
                                            const std::string& path) {
  int pid = target ? target->pid : ::getpid();
  auto space = target ? state_->ReadSpace(*target) : probe::AddressSpace::Read(pid);
  PROBED_TRY(auto named, OpenFile(state_->files, std::move(space), pid, path));
  PROBED_TRY(auto flow, probe::AnalyzeFlow(*named.file));
  FileExplanation explanation{.path = named.path, .shares = {}};
  for (const probe::PlanShare& share : probe::CountPlans(*named.file, *flow))
    explanation.shares.push_back(ToInfo(share));
  return explanation;
}

}  // namespace probed::engine
