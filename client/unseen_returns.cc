#include "client/unseen_returns.h"

#include <fmt/format.h>

namespace probed::client {
namespace {

constexpr size_t kMostTold = 3;

}  // namespace

void UnseenReturns::WarnOf(const v1::CreateProbesResponse& created) {
  for (const auto& probe : created.probes())
    if (!probe.unseen_returns().empty()) WarnOf(probe);
}

void UnseenReturns::WarnOf(const v1::Probe& probe) {
  if (told_.size() > kMostTold || !told_.insert(probe.definition()).second) return;
  if (told_.size() > kMostTold) {
    talk_.Warn("more probes do not see all returns: 'probectl list' tells which");
    return;
  }
  talk_.Warn(fmt::format("r:{}/{} does not count what leaves its function by {}", probe.group(),
                         probe.event(), probe.unseen_returns()));
}

}  // namespace probed::client
