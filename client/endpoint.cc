#include "client/endpoint.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/address.h"

namespace probed::client {
namespace {

Error NoDaemon(const std::string& path, int error_number) {
  return {.code = ErrorCode::kUnavailable,
          .reason = "NO_DAEMON",
          .message = "no daemon answers on " + path + ": " + std::strerror(error_number),
          .hint = "start one with 'probed', or name its socket with --address",
          .metadata = {}};
}

Error SocketPermission(const std::string& path) {
  return {.code = ErrorCode::kPermissionDenied,
          .reason = "SOCKET_PERMISSION",
          .message = "you may not connect to " + path,
          .hint =
              "join the group that owns the socket (probed), become root, or use a daemon of "
              "your own: --address private",
          .metadata = {}};
}

Error ConnectError(const std::string& path, int error_number) {
  if (error_number == EACCES || error_number == EPERM) return SocketPermission(path);
  return NoDaemon(path, error_number);
}

Result<UniqueFd> ConnectUnix(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    return ConnectError(path, errno);
  }
  return fd;
}

pid_t PeerOf(const UniqueFd& fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return peer.pid;
}

Result<Endpoint> LocalEndpoint(const std::string& path) {
  PROBED_TRY(UniqueFd fd, ConnectUnix(path));
  Endpoint endpoint;
  endpoint.text = "unix://" + path;
  endpoint.peer = PeerOf(fd);
  endpoint.socket = std::move(fd);
  return endpoint;
}

Result<Endpoint> PrivateEndpoint() {
  PROBED_TRY(PrivateDaemon daemon, PrivateDaemon::Start());
  Endpoint endpoint;
  endpoint.text = "a private daemon";
  endpoint.peer = daemon.pid();
  PROBED_TRY(endpoint.socket, daemon.Connect());
  endpoint.daemon.emplace(std::move(daemon));
  return endpoint;
}

Error PrivateDaemonIsNew() {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "PRIVATE_DAEMON_IS_NEW",
          .message =
              "a private daemon starts with this command and ends with it: there would be "
              "nothing to show or to change",
          .hint = "start one with 'probed', and leave --address private out",
          .metadata = {}};
}

Result<Endpoint> RemoteEndpoint(const TcpAddress& address, const TlsFiles& tls) {
  if (tls.ca.empty() || tls.certificate.empty() || tls.key.empty()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "TLS_REQUIRED",
                 .message = "a daemon is reached over TCP with mutual TLS only",
                 .hint = "--tls-ca, --tls-cert and --tls-key",
                 .metadata = {}};
  }
  Endpoint endpoint;
  endpoint.text = "tcp://" + address.host_port;
  endpoint.host_port = address.host_port;
  endpoint.tls = tls;
  return endpoint;
}

std::string ChosenAddress(const EndpointOptions& options) {
  if (!options.address.empty()) return options.address;
  const char* environment = std::getenv("PROBED_ADDRESS");
  return environment != nullptr ? environment : "";
}

Result<Endpoint> DefaultEndpoint(Fallback fallback) {
  auto endpoint = LocalEndpoint(kDefaultSocket);
  if (endpoint.ok() || fallback != Fallback::kPrivateDaemon) return endpoint;
  // Someone guards this socket: starting another daemon would go behind their back.
  if (endpoint.error().reason != "NO_DAEMON") return endpoint;
  return PrivateEndpoint();
}

}  // namespace

Result<Endpoint> FindEndpoint(const EndpointOptions& options, Fallback fallback) {
  std::string text = ChosenAddress(options);
  if (text.empty()) return DefaultEndpoint(fallback);
  if (text == "private" && fallback == Fallback::kNone) return PrivateDaemonIsNew();
  if (text == "private") return PrivateEndpoint();
  PROBED_TRY(Address address, ParseAddress(text));
  if (auto* local = std::get_if<UnixAddress>(&address)) return LocalEndpoint(local->path);
  return RemoteEndpoint(std::get<TcpAddress>(address), options.tls);
}

}  // namespace probed::client
