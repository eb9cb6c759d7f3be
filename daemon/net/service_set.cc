#include "daemon/net/service_set.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <mutex>

#include "base/file.h"
#include "daemon/services/events.h"
#include "daemon/services/kernel.h"
#include "daemon/services/probes.h"
#include "daemon/services/server.h"
#include "daemon/services/symbols.h"
#include "daemon/services/targets.h"
#include "grpc/health/v1/health.pb.h"

namespace probed::daemon {
namespace {

constexpr int kKeepaliveMinimumMs = 10'000;  // a client that pings more often is cut off
// For calls in progress. Not longer: an idle client does not answer the good-bye, and targets wait.
constexpr std::chrono::milliseconds kDrain{200};

// Once for the process: plugins are global in gRPC.
void InitializePlugins() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // The default service speaks health.proto without having its descriptor; reflection serves what
    // is linked, so it must be.
    (void)grpc::health::v1::HealthCheckRequest::descriptor();
  });
}

// One for all servers of the process.
grpc::ResourceQuota& Quota(int64_t max_threads) {
  static grpc::ResourceQuota quota("probed");
  return quota.SetMaxThreads(static_cast<int>(max_threads));
}

void Configure(grpc::ServerBuilder& builder, const Limits& limits) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(limits.max_streams));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kKeepaliveMinimumMs);
  builder.SetResourceQuota(Quota(limits.max_threads));
  // One queue and one idle poller per server keep an idle daemon small; threads come with calls.
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS, 2);
}

Result<std::shared_ptr<grpc::ServerCredentials>> TlsCredentials(const TlsConfig& tls) {
  PROBED_TRY(std::string key, ReadFile(tls.key));
  PROBED_TRY(std::string cert, ReadFile(tls.cert));
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  PROBED_TRY(options.pem_root_certs, ReadFile(tls.client_ca));
  options.pem_key_cert_pairs.push_back({std::move(key), std::move(cert)});
  return grpc::SslServerCredentials(options);
}

}  // namespace

struct ServiceSet::Services {
  Services(ServiceContext& context, const Caller& caller)
      : targets(context, caller),
        probes(context, caller),
        events(context, caller),
        symbols(context, caller),
        server(context, caller),
        kernel(caller) {}

  TargetService targets;
  ProbeService probes;
  EventService events;
  SymbolService symbols;
  ServerService server;
  KernelService kernel;

  void AddTo(grpc::ServerBuilder& builder) {
    for (grpc::Service* service :
         {static_cast<grpc::Service*>(&targets), static_cast<grpc::Service*>(&probes),
          static_cast<grpc::Service*>(&events), static_cast<grpc::Service*>(&symbols),
          static_cast<grpc::Service*>(&server), static_cast<grpc::Service*>(&kernel)})
      builder.RegisterService(service);
  }
};

ServiceSet::ServiceSet(ServiceContext& context, Caller caller)
    : caller_(std::move(caller)), services_(std::make_unique<Services>(context, caller_)) {
  InitializePlugins();
}

Result<std::unique_ptr<ServiceSet>> ServiceSet::Start(ServiceContext& context, Caller caller) {
  std::unique_ptr<ServiceSet> set(new ServiceSet(context, std::move(caller)));
  grpc::ServerBuilder builder;
  Configure(builder, context.limits);
  set->services_->AddTo(builder);
  set->server_ = builder.BuildAndStart();
  if (set->server_ == nullptr)
    return Error{
        ErrorCode::kInternal, "SERVER_NOT_STARTED", "gRPC could not start a server", "", {}};
  set->SetServing(true);
  return set;
}

Result<std::unique_ptr<ServiceSet>> ServiceSet::StartTls(ServiceContext& context,
                                                         const std::string& host_port,
                                                         const TlsConfig& tls) {
  PROBED_TRY(auto credentials, TlsCredentials(tls));
  std::unique_ptr<ServiceSet> set(new ServiceSet(context, Caller{0, 0, true, "tls", true}));
  grpc::ServerBuilder builder;
  Configure(builder, context.limits);
  set->services_->AddTo(builder);
  int port = 0;
  builder.AddListeningPort(host_port, credentials, &port);
  set->server_ = builder.BuildAndStart();
  if (set->server_ == nullptr || port == 0)
    return Error{ErrorCode::kUnavailable,
                 "CANNOT_LISTEN",
                 "cannot listen on tcp://" + host_port,
                 "check the address, the port and the certificate files",
                 {}};
  set->SetServing(true);
  return set;
}

ServiceSet::~ServiceSet() {
  if (server_ == nullptr) return;
  SetServing(false);
  server_->Shutdown(std::chrono::system_clock::now() + kDrain);
}

void ServiceSet::Adopt(UniqueFd connection) {
  grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
}

void ServiceSet::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  if (health == nullptr) return;
  for (const char* name :
       {v1::TargetService::service_full_name(), v1::ProbeService::service_full_name(),
        v1::EventService::service_full_name(), v1::SymbolService::service_full_name(),
        v1::ServerService::service_full_name(), v1::KernelService::service_full_name()})
    health->SetServingStatus(name, serving);
  health->SetServingStatus("", serving);
}

}  // namespace probed::daemon
