#include "client/verbs/find_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace probed::client {
namespace {

RemoteError NotAttached(int pid) {
  return {.error = {.code = ErrorCode::kNotFound,
                    .reason = kNotAttached,
                    .message = fmt::format("process {} is not attached", pid),
                    .hint = pid == 1 ? "init never is; 'probectl targets' lists what is"
                                     : fmt::format("probectl attach --pid {}; 'probectl targets' "
                                                   "lists what is",
                                                   pid),
                    .metadata = {}},
          .verdicts = {}};
}

RemoteError NoSuchProbe(const std::string& selector) {
  return {.error = {.code = ErrorCode::kNotFound,
                    .reason = "NO_SUCH_PROBE",
                    .message = "no probe is called " + selector,
                    .hint = "'probectl list' shows their names",
                    .metadata = {}},
          .verdicts = {}};
}

// Without "-:", and without place and arguments.
std::string_view NameIn(std::string_view selector) {
  if (selector.starts_with("-:")) selector.remove_prefix(2);
  return selector.substr(0, selector.find(' '));
}

// The resource name or the event that a selector names; empty: all of a group.
std::string_view KeyOf(std::string_view selector) {
  std::string_view name = NameIn(selector);
  if (name.starts_with("targets/")) return name;
  return name.substr(name.find('/') + 1);
}

// Requests name thousands of probes out of thousands.
class ProbeIndex {
 public:
  explicit ProbeIndex(const std::vector<v1::Probe>& probes) {
    for (const auto& probe : probes) {
      for (std::string_view key :
           {std::string_view(probe.name()), std::string_view(probe.event()), std::string_view()}) {
        by_key_[key].push_back(&probe);
      }
    }
  }
  std::vector<std::string> NamesOf(const std::string& selector) const {
    std::vector<std::string> names;
    auto found = by_key_.find(KeyOf(selector));
    if (found == by_key_.end()) return names;
    for (const auto* probe : found->second) {
      if (Selects(selector, *probe)) names.push_back(probe->name());
    }
    return names;
  }

 private:
  std::unordered_map<std::string_view, std::vector<const v1::Probe*>> by_key_;
};

bool NameMatches(std::string_view name, const v1::Probe& probe) {
  if (name.starts_with("targets/")) return name == probe.name();
  size_t slash = name.find('/');
  if (slash == std::string_view::npos) return name == probe.event();
  if (name.substr(0, slash) != probe.group()) return false;
  std::string_view event = name.substr(slash + 1);
  return event.empty() || event == probe.event();
}

// What follows the first space of the read-back line: place and arguments.
std::string_view Body(std::string_view definition) {
  size_t space = definition.find(' ');
  return space == std::string_view::npos ? std::string_view() : definition.substr(space + 1);
}

bool BodyMatches(std::string_view wanted, std::string_view body) {
  if (!body.starts_with(wanted)) return false;
  return wanted.empty() || body.size() == wanted.size() || body[wanted.size()] == ' ';
}

}  // namespace

bool IsDeleted(const RemoteError& refusal) {
  return refusal.error.reason == "PROBE_NOT_FOUND";
}

Reply<std::string> FindTarget(Api& api, const TargetOption& option) {
  if (option.pid == 0) return option.name;
  auto targets = api.ListTargets();
  if (!targets) return tl::unexpected(std::move(targets).error());
  for (const auto& target : *targets) {
    if (target.pid() == option.pid && target.state() == v1::Target::STATE_RUNNING) {
      return target.name();
    }
  }
  return tl::unexpected(NotAttached(option.pid));
}

Reply<std::string> FindParent(Api& api, const TargetOption& option) {
  auto name = FindTarget(api, option);
  if (name && name->empty()) return std::string("targets/-");
  return name;
}

bool Selects(const std::string& selector, const v1::Probe& probe) {
  if (!NameMatches(NameIn(selector), probe)) return false;
  size_t space = selector.find(' ');
  return space == std::string::npos ||
         BodyMatches(std::string_view(selector).substr(space + 1), Body(probe.definition()));
}

Reply<std::vector<std::string>> SelectProbes(Api& api, const std::string& parent,
                                             const std::vector<std::string>& selectors) {
  auto probes = api.ListProbes(parent);
  if (!probes) return tl::unexpected(std::move(probes).error());
  const ProbeIndex index(*probes);
  std::vector<std::string> names;
  for (const auto& selector : selectors) {
    std::vector<std::string> selected = index.NamesOf(selector);
    if (selected.empty()) return tl::unexpected(NoSuchProbe(selector));
    names.insert(names.end(), selected.begin(), selected.end());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace probed::client
