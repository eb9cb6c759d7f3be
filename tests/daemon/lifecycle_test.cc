// How the program starts, is asked about itself and ends.

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "tests/daemon/running_daemon.h"

namespace probed::daemon {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1alpha::ServerReflection;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

TEST(Lifecycle, HealthOfEveryService) {
  RunningDaemon daemon;
  ASSERT_TRUE(daemon.ready());
  Client client = daemon.Connect();
  const auto health = Health::NewStub(client.channel);
  for (const char* service :
       {"", "probed.v1.TargetService", "probed.v1.ProbeService", "probed.v1.EventService",
        "probed.v1.SymbolService", "probed.v1.ServerService"}) {
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    EXPECT_TRUE(Call(*health, &Health::Stub::Check, request, response).ok()) << service;
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING) << service;
  }
  HealthCheckRequest request;
  request.set_service("no.such.Service");
  HealthCheckResponse response;
  EXPECT_EQ(Call(*health, &Health::Stub::Check, request, response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

ServerReflectionResponse Reflect(Client& client, const ServerReflectionRequest& request) {
  const auto stub = ServerReflection::NewStub(client.channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  auto stream = stub->ServerReflectionInfo(&context);
  ServerReflectionResponse response;
  stream->Write(request);
  EXPECT_TRUE(stream->Read(&response));
  stream->WritesDone();
  (void)stream->Finish();
  return response;
}

TEST(Lifecycle, ReflectionListsServicesAndTheirSchemas) {
  RunningDaemon daemon;
  ASSERT_TRUE(daemon.ready());
  Client client = daemon.Connect();
  ServerReflectionRequest request;
  request.set_list_services("");
  const auto list = Reflect(client, request);
  std::set<std::string> names;
  for (const auto& service : list.list_services_response().service())
    names.insert(service.name());
  for (const char* name :
       {"probed.v1.TargetService", "probed.v1.EventService", "grpc.health.v1.Health"}) {
    EXPECT_TRUE(names.contains(name)) << name;
    request.set_file_containing_symbol(name);
    EXPECT_TRUE(Reflect(client, request).has_file_descriptor_response()) << name;
  }
}

TEST(Lifecycle, SigtermGivesTargetsBack) {
  RunningDaemon daemon;
  ASSERT_TRUE(daemon.ready());
  const auto victim = StartVictim();
  Client client = daemon.Connect();
  const v1::Target target = Attach(client, victim->pid());
  Create(client, target, {"p:t/tick " + VictimPath() + ":tick"});
  grpc::ClientContext watch;
  auto reader = client.events->WatchEvents(&watch, v1::WatchEventsRequest());
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
  EXPECT_EQ(ProcNumber(victim->pid(), "TracerPid"), 0);
  victim->Say("3");
  EXPECT_EQ(victim->ReadLine(), "4");
  watch.TryCancel();
  (void)reader->Finish();
  EXPECT_NE(access(daemon.socket().c_str(), F_OK), 0) << "the socket file is left behind";
}

TEST(Lifecycle, SighupKeepsServing) {
  RunningDaemon daemon;
  ASSERT_TRUE(daemon.ready());
  daemon.process().Signal(SIGHUP);
  Client client = daemon.Connect();
  v1::ServerInfo info;
  EXPECT_TRUE(Call(*client.server, &v1::ServerService::Stub::GetServerInfo,
                   v1::GetServerInfoRequest(), info)
                  .ok());
}

// The log is the witness: the level comes from the file, unless the command line says it.
TEST(Lifecycle, SighupReadsTheLogLevel) {
  const std::string config = "/tmp/probed-reload-" + std::to_string(getpid());
  auto level_after_reload = [&](const std::vector<std::string>& options) {
    std::ofstream(config) << "[log]\nlevel = \"error\"\n";
    std::vector<std::string> argv = {
        "/bin/bash", "-c",       "exec \"$0\" \"$@\" 2>&1",   PROBED_PROGRAM, "--config",
        config,      "--listen", "unix://" + config + ".sock"};
    argv.insert(argv.end(), options.begin(), options.end());
    ChildProcess process(argv);
    EXPECT_TRUE(Eventually([&] { return access((config + ".sock").c_str(), F_OK) == 0; }));
    std::ofstream(config) << "[log]\nlevel = \"info\"\n";
    process.Signal(SIGHUP);
    if (options.empty()) {
      EXPECT_NE(process.ReadLine().find("log level info"), std::string::npos);
    }
    process.Signal(SIGTERM);
    std::string next = process.ReadLine();
    EXPECT_EQ(process.Wait(), 0);
    return next;
  };
  EXPECT_NE(level_after_reload({}).find("signal 15"), std::string::npos);
  EXPECT_EQ(level_after_reload({"--log-level", "critical"}), "");
  unlink(config.c_str());
}

TEST(Lifecycle, PrivateDaemonEndsWithItsClient) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  ChildProcess process({PROBED_PROGRAM, "--private-fd", std::to_string(pair[1])}, {{}, pair[1]});
  close(pair[1]);
  const auto victim = StartVictim();
  {
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    Client client(grpc::CreateInsecureChannelFromFd("private", pair[0]));
    const v1::Target target = Attach(client, victim->pid());
    Create(client, target, {"p:t/tick " + VictimPath() + ":tick"});
    EXPECT_EQ(TracerOf(victim->pid()), process.pid());
  }
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_EQ(ProcNumber(victim->pid(), "TracerPid"), 0);
  victim->Say("3");
  EXPECT_EQ(victim->ReadLine(), "4");
}

// As the service manager does it: a listening socket as descriptor 3. It can be connected to before
// the daemon runs.
TEST(Lifecycle, SocketActivation) {
  const std::string path = "/tmp/probed-activated-" + std::to_string(getpid());
  unlink(path.c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(fd, 8), 0);
  const std::string script = "exec 3<&" + std::to_string(fd) +
                             "; LISTEN_FDS=1 LISTEN_PID=$$ exec " + std::string(PROBED_PROGRAM);
  ChildProcess process({"/bin/bash", "-c", script}, {{}, fd});
  Client client(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
  v1::ServerInfo info;
  ASSERT_TRUE(Call(*client.server, &v1::ServerService::Stub::GetServerInfo,
                   v1::GetServerInfoRequest(), info)
                  .ok());
  EXPECT_EQ(info.pid(), process.pid());
  process.Signal(SIGTERM);
  EXPECT_EQ(process.Wait(), 0);
  EXPECT_EQ(access(path.c_str(), F_OK), 0) << "the socket file is the service manager's";
  close(fd);
  unlink(path.c_str());
}

TEST(Lifecycle, IdleDaemonIsSmall) {
  RunningDaemon daemon;
  ASSERT_TRUE(daemon.ready());
  Client client = daemon.Connect();
  v1::ServerInfo info;
  ASSERT_TRUE(Call(*client.server, &v1::ServerService::Stub::GetServerInfo,
                   v1::GetServerInfoRequest(), info)
                  .ok());
  const long resident = ProcNumber(daemon.process().pid(), "VmRSS");
  RecordProperty("resident_kib", static_cast<int>(resident));
  if (!kHasSanitizer) {
    EXPECT_LT(resident, 40 << 10) << "KiB";
  }
}

int RunToEnd(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {PROBED_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return ChildProcess(argv).Wait();
}

TEST(Lifecycle, CommandLine) {
  EXPECT_EQ(RunToEnd({"--version"}), 0);
  EXPECT_EQ(RunToEnd({"--check-config"}), 0);
  EXPECT_EQ(RunToEnd({"--print-config"}), 0);
  EXPECT_NE(RunToEnd({"--no-such-option"}), 0);
  EXPECT_NE(RunToEnd({"--check-config", "--config", "/no/such/file"}), 0);
  EXPECT_NE(RunToEnd({"--check-config", "--log-level", "loud"}), 0);
  EXPECT_NE(RunToEnd({"--listen", "tcp://127.0.0.1:0"}), 0) << "TCP without TLS must be refused";
}

}  // namespace
}  // namespace probed::daemon
