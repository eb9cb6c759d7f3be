#include "daemon/net/connections.h"

#include <fcntl.h>

#include <cerrno>

#include "engine/privileges.h"

namespace probed::daemon {
namespace {

// Each identity costs a server and a thread.
constexpr size_t kMaxIdentities = 64;

Error TooMany(std::string reason, std::string message) {
  return Error{ErrorCode::kResourceExhausted,
               std::move(reason),
               std::move(message),
               "close connections, or raise limits.max_connections",
               {}};
}

}  // namespace

Result<int> Connections::Add(UniqueFd connection, bool from_starter) {
  if (watches_.size() >= static_cast<size_t>(context_.limits.max_connections))
    return TooMany("TOO_MANY_CONNECTIONS", "the limit of connections is reached");
  PROBED_TRY(Caller caller, CallerOfSocket(connection.get(), admin_group_));
  caller.traces_all = from_starter && engine::TracesAll(engine::ReadPrivileges());
  PROBED_TRY(ServiceSet * services, ServicesOf(caller));
  UniqueFd watch(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!watch.valid()) return ErrnoError(errno, "fcntl F_DUPFD_CLOEXEC");
  const int fd = watch.get();
  services->Adopt(std::move(connection));
  watches_.emplace(fd, std::move(watch));
  return fd;
}

Result<ServiceSet*> Connections::ServicesOf(const Caller& caller) {
  for (auto& services : services_)
    if (services->caller() == caller) return services.get();
  if (services_.size() >= kMaxIdentities)
    return TooMany("TOO_MANY_IDENTITIES", "too many different users have connected");
  PROBED_TRY(auto started, ServiceSet::Start(context_, caller));
  started->SetServing(serving_);
  return services_.emplace_back(std::move(started)).get();
}

void Connections::SetServing(bool serving) {
  serving_ = serving;
  for (auto& services : services_)
    services->SetServing(serving);
}

}  // namespace probed::daemon
