#pragma once
// A way to a daemon, found before gRPC (and its threads) exists: `run` and the private daemon fork.

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "client/private_daemon.h"

namespace probed::client {

struct TlsFiles {
  std::string ca, certificate, key;
};

struct EndpointOptions {
  std::string address;  // empty: PROBED_ADDRESS, else the default socket
  TlsFiles tls;
};

enum class Fallback : uint8_t {
  kNone,           // no daemon is an error, and one of our own would know nothing
  kOnRequest,      // one of our own, if --address asks for it
  kPrivateDaemon,  // on the default socket only: start one
};

struct Endpoint {
  std::string text;       // for messages
  UniqueFd socket;        // connected, when local
  std::string host_port;  // when remote
  TlsFiles tls;
  pid_t peer = 0;  // the daemon's pid when known
  std::optional<PrivateDaemon> daemon;
};

// Errors: NO_DAEMON, PRIVATE_DAEMON_IS_NEW, SOCKET_PERMISSION (never a reason to fall back),
// TLS_REQUIRED, BAD_ADDRESS and those of PrivateDaemon::Start.
Result<Endpoint> FindEndpoint(const EndpointOptions& options, Fallback fallback);

}  // namespace probed::client
