#include "tests/daemon/running_daemon.h"

#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "google/rpc/status.pb.h"
#include "probed/v1/common.pb.h"

namespace probed::daemon {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

bool ReceivesReady(int fd) {
  pollfd poll_fd{fd, POLLIN, 0};
  char buffer[512];
  if (poll(&poll_fd, 1, 20'000) != 1) return false;
  const ssize_t size = recv(fd, buffer, sizeof buffer, 0);
  return size > 0 && std::string(buffer, static_cast<size_t>(size)).starts_with("READY=1");
}

}  // namespace

Client::Client(std::shared_ptr<grpc::Channel> shared)
    : channel(std::move(shared)),
      targets(v1::TargetService::NewStub(channel)),
      probes(v1::ProbeService::NewStub(channel)),
      events(v1::EventService::NewStub(channel)),
      symbols(v1::SymbolService::NewStub(channel)),
      server(v1::ServerService::NewStub(channel)) {}

RunningDaemon::RunningDaemon() {
  char pattern[] = "/tmp/probed-daemon-XXXXXX";
  folder_ = mkdtemp(pattern);
  socket_ = folder_ + "/socket";
  const std::string notify = folder_ + "/notify";
  const UniqueFd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = AddressOf(notify);
  if (bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{PROBED_PROGRAM, "--listen", "unix://" + socket_, "--log-level",
                               "warning"},
      ChildProcess::Options{{"NOTIFY_SOCKET=" + notify}, -1});
  ready_ = ReceivesReady(manager.get());
}

RunningDaemon::~RunningDaemon() {
  // Whatever was asked of it, it ends in good order; a sanitizer's findings are in its exit code.
  if (ready_ && process_->running()) {
    process_->Signal(SIGTERM);
    EXPECT_EQ(process_->Wait(), 0);
  }
  process_.reset();
  std::filesystem::remove_all(folder_);
}

Client RunningDaemon::Connect() const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection for each client
  return Client(
      grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments));
}

std::optional<Client> RunningDaemon::ConnectAs(uid_t uid) const {
  chmod(folder_.c_str(), 0755);
  chmod(socket_.c_str(), 0666);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = AddressOf(socket_);
  // By system call: of this thread only, unlike the library's function.
  if (syscall(SYS_setresgid, -1, uid, -1) != 0 || syscall(SYS_setresuid, -1, uid, -1) != 0)
    return std::nullopt;
  const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (syscall(SYS_setresuid, -1, 0, -1) != 0 || syscall(SYS_setresgid, -1, 0, -1) != 0) abort();
  if (rc != 0) return std::nullopt;
  return Client(grpc::CreateInsecureChannelFromFd("as-another-user", fd));
}

std::string VictimPath() {
  return VICTIM_PROGRAM;
}

std::unique_ptr<ChildProcess> StartVictim() {
  auto victim = std::make_unique<ChildProcess>(std::vector<std::string>{VictimPath()});
  EXPECT_EQ(victim->ReadLine(), "ready");
  return victim;
}

template <class Detail>
std::optional<Detail> DetailOf(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  Detail detail;
  for (const auto& any : details.details())
    if (any.UnpackTo(&detail)) return detail;
  return std::nullopt;
}
template std::optional<v1::LineVerdicts> DetailOf(const grpc::Status&);

std::string ReasonOf(const grpc::Status& status) {
  const auto info = DetailOf<google::rpc::ErrorInfo>(status);
  return info ? info->reason() : "";
}

v1::Target Attach(Client& client, pid_t pid, const std::string& session) {
  v1::AttachTargetRequest request;
  request.set_pid(pid);
  request.set_session(session);
  v1::Target target;
  const auto status =
      Call(*client.targets, &v1::TargetService::Stub::AttachTarget, request, target);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return target;
}

std::vector<v1::Probe> Create(Client& client, const v1::Target& target,
                              const std::vector<std::string>& lines, const std::string& session) {
  v1::CreateProbesRequest request;
  request.set_parent(target.name());
  request.set_session(session);
  for (const std::string& line : lines)
    request.add_definitions(line);
  v1::CreateProbesResponse response;
  const auto status =
      Call(*client.probes, &v1::ProbeService::Stub::CreateProbes, request, response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {response.probes().begin(), response.probes().end()};
}

bool Eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 2);
  }
  return true;
}

}  // namespace probed::daemon
