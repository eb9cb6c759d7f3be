#pragma once
// From what the user calls a target or probe to the API's resource names.

#include <string>
#include <utility>
#include <vector>

#include "client/api.h"
#include "client/verbs/options.h"

namespace probed::client {

// The running kernel, as a parent of probes, symbols and locations.
inline const Reply<std::string> kKernelParent{"targets/kernel"};

inline constexpr char kNotAttached[] = "NOT_ATTACHED";

// The resource name of the attached target; "" when the options name none. NOT_ATTACHED.
Reply<std::string> FindTarget(Api& api, const TargetOption& option);
// The same, "targets/-" when the options name none.
Reply<std::string> FindParent(Api& api, const TargetOption& option);

// True when `selector` means this probe. A selector is a resource name, EVENT (in every group),
// GROUP/EVENT, GROUP/ (all of it), any of them behind "-:" and followed by a place and arguments as
// the read-back form has them (the kernel's deletion syntax).
bool Selects(const std::string& selector, const v1::Probe& probe);

// Names of all probes below `parent` that the selectors mean. NO_SUCH_PROBE when one means none.
Reply<std::vector<std::string>> SelectProbes(Api& api, const std::string& parent,
                                             const std::vector<std::string>& selectors);

// Another client has deleted it since it was selected.
bool IsDeleted(const RemoteError& refusal);

// What `change` makes of the selected names, all or none. If one of them is deleted meanwhile, what
// the selectors mean is asked for anew.
template <class Change>
auto ChangeSelected(Api& api, const std::string& parent, const std::vector<std::string>& selectors,
                    const Change& change) -> decltype(change(selectors)) {
  constexpr int kMostAttempts = 8;
  for (int i = 1;; ++i) {
    auto names = SelectProbes(api, parent, selectors);
    if (!names) return tl::unexpected(std::move(names).error());
    auto changed = change(*names);
    if (changed || !IsDeleted(changed.error()) || i == kMostAttempts) return changed;
  }
}

}  // namespace probed::client
