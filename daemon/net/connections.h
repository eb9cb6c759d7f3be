#pragma once
// Live unix connections: finds out whose they are, hands them to that identity's services, and sees
// them end. Main thread only.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "daemon/net/service_set.h"

namespace probed::daemon {

class Connections {
 public:
  Connections(ServiceContext& context, std::string admin_group)
      : context_(context), admin_group_(std::move(admin_group)) {}

  // Takes a connected, non-blocking socket. `from_starter`: of who has started us, and gave us what
  // capabilities we have. Returns the descriptor that polls EPOLLRDHUP when the
  // peer is gone; Forget() must be called with it then.
  Result<int> Add(UniqueFd connection, bool from_starter = false);
  void Forget(int watch_fd) { watches_.erase(watch_fd); }
  void SetServing(bool serving);

 private:
  Result<ServiceSet*> ServicesOf(const Caller& caller);

  ServiceContext& context_;
  std::string admin_group_;
  bool serving_ = true;
  std::vector<std::unique_ptr<ServiceSet>> services_;  // one per identity seen
  std::map<int, UniqueFd> watches_;                    // duplicates of what gRPC owns
};

}  // namespace probed::daemon
