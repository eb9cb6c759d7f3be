#include "client/channel.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <string>

#include "base/file.h"

namespace probed::client {
namespace {

// A batch of events with long strings is larger than gRPC's 4 MiB.
constexpr int kMaxMessage = 64 << 20;

Result<std::shared_ptr<grpc::ChannelCredentials>> Credentials(const TlsFiles& files) {
  grpc::SslCredentialsOptions options;
  PROBED_TRY(options.pem_root_certs, ReadFile(files.ca));
  PROBED_TRY(options.pem_cert_chain, ReadFile(files.certificate));
  PROBED_TRY(options.pem_private_key, ReadFile(files.key));
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::Channel> LocalChannel(Endpoint& endpoint) {
  int fd = endpoint.socket.Release();
  // gRPC's event engine expects it.
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessage);
  return grpc::CreateCustomInsecureChannelFromFd("unix:probed", fd, arguments);
}

}  // namespace

Result<std::shared_ptr<grpc::Channel>> OpenChannel(Endpoint& endpoint) {
  if (endpoint.host_port.empty()) return LocalChannel(endpoint);
  PROBED_TRY(auto credentials, Credentials(endpoint.tls));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessage);
  return grpc::CreateCustomChannel(endpoint.host_port, credentials, arguments);
}

}  // namespace probed::client
