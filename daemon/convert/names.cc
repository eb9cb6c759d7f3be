#include "daemon/convert/names.h"

#include <charconv>

#include <fmt/format.h>

namespace probed::daemon {
namespace {

constexpr std::string_view kTargets = "targets/";
constexpr std::string_view kKernel = "targets/kernel";
constexpr std::string_view kProbes = "/probes/";

// Canonical decimal only, so that one thing has one name: no sign, no leading zero.
template <class Number>
bool ParseNumber(std::string_view text, Number& number) {
  if (text.empty() || (text.size() > 1 && text[0] == '0') || text[0] == '-') return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Error InvalidName(std::string_view name, std::string_view form) {
  return Error{ErrorCode::kInvalidArgument,
               "INVALID_NAME",
               fmt::format("\"{}\" is not a name of the form {}", name, form),
               "take names from a list call",
               {{"name", std::string(name)}}};
}

}  // namespace

std::string TargetName(event::TargetId target) {
  if (target == engine::kKernelTarget) return std::string(kKernel);
  return fmt::format("targets/{}-{}", target.pid, target.start_ticks);
}

std::string ProbeName(const ProbeRef& probe) {
  return fmt::format("{}/probes/{}", TargetName(probe.target), probe.probe);
}

Result<event::TargetId> ParseTargetName(std::string_view name) {
  const Error invalid = InvalidName(name, "targets/PID-START");
  if (name == kKernel) return engine::kKernelTarget;
  if (!name.starts_with(kTargets)) return invalid;
  const std::string_view id = name.substr(kTargets.size());
  const size_t dash = id.find('-');
  event::TargetId target;
  if (dash == id.npos || !ParseNumber(id.substr(0, dash), target.pid) ||
      !ParseNumber(id.substr(dash + 1), target.start_ticks) || target.pid == 0)
    return invalid;
  return target;
}

Result<ProbeRef> ParseProbeName(std::string_view name) {
  const Error invalid = InvalidName(name, "targets/PID-START/probes/ID");
  const size_t split = name.find(kProbes);
  if (split == name.npos) return invalid;
  auto target = ParseTargetName(name.substr(0, split));
  ProbeRef probe;
  if (!target.ok() || !ParseNumber(name.substr(split + kProbes.size()), probe.probe))
    return invalid;
  probe.target = *target;
  return probe;
}

Result<std::optional<event::TargetId>> ParseParent(std::string_view name) {
  if (name == "targets/-") return std::optional<event::TargetId>();
  PROBED_TRY(event::TargetId target, ParseTargetName(name));
  return std::optional<event::TargetId>(target);
}

}  // namespace probed::daemon
