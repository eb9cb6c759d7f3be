#include "client/verbs/joiner.h"

#include <fmt/format.h>

namespace probed::client {

void Joiner::Turn() {
  session_.CollectEnded();
  for (const auto& process : newcomers_.Take()) {
    if (IsNotMeant(options_, process.pid())) continue;
    if (auto joined = session_.Join(process, request_); !joined) {
      talk_.Warn(fmt::format("{} ({}) is left out: {}", process.pid(), process.comm(),
                             joined.error().error.message));
    }
  }
  if (auto error = newcomers_.TakeError()) {
    talk_.Warn("processes that start from now on are left out");
    talk_.Fail(*error);
  }
}

}  // namespace probed::client
