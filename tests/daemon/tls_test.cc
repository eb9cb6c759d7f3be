// TCP needs a client certificate of the configured authority.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/daemon/running_daemon.h"

namespace probed::daemon {
namespace {

// A port that was free a moment ago.
int FreePort() {
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no openssl program";
    char pattern[] = "/tmp/probed-tls-XXXXXX";
    folder_ = mkdtemp(pattern);
    Issue("ca", "");
    Issue("server", "ca");
    Issue("client", "ca");
    Issue("stranger", "");
    port_ = std::to_string(FreePort());
    std::ofstream(folder_ + "/probed.toml")
        << "listen = [\"tcp://127.0.0.1:" << port_ << "\"]\n[tls]\ncert = \"" << folder_
        << "/server.crt\"\nkey = \"" << folder_ << "/server.key\"\nclient_ca = \"" << folder_
        << "/ca.crt\"\n";
    daemon_ = std::make_unique<ChildProcess>(std::vector<std::string>{
        PROBED_PROGRAM, "--config", folder_ + "/probed.toml", "--log-level", "warning"});
  }
  void TearDown() override {
    daemon_.reset();
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // A key and a certificate, self-signed when `authority` is empty.
  void Issue(const std::string& name, const std::string& authority) {
    std::ostringstream command;
    command << "cd " << folder_ << " && openssl req -x509 -newkey ec -pkeyopt "
            << "ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=" << name
            << " -addext subjectAltName=DNS:localhost -keyout " << name << ".key -out " << name
            << ".crt";
    if (!authority.empty())
      command << " -CA " << authority << ".crt -CAkey " << authority << ".key";
    command << " 2>openssl.log";
    ASSERT_EQ(std::system(command.str().c_str()), 0) << Read("openssl.log");
  }

  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }

  grpc::Status Ask(const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    Client client(grpc::CreateCustomChannel("127.0.0.1:" + port_, credentials, arguments));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + patience_);
    v1::ServerInfo info;
    return client.server->GetServerInfo(&context, v1::GetServerInfoRequest(), &info);
  }

  std::shared_ptr<grpc::ChannelCredentials> Certificate(const std::string& name) const {
    return grpc::SslCredentials({Read("ca.crt"), Read(name + ".key"), Read(name + ".crt")});
  }

  std::string folder_;
  std::string port_;
  std::chrono::seconds patience_{30};
  std::unique_ptr<ChildProcess> daemon_;
};

TEST_F(TlsTest, OnlyCertificatesOfTheAuthority) {
  const grpc::Status known = Ask(Certificate("client"));
  EXPECT_TRUE(known.ok()) << known.error_message();
  patience_ = std::chrono::seconds(2);  // a refused handshake is tried again until then
  EXPECT_FALSE(Ask(grpc::SslCredentials({Read("ca.crt"), "", ""})).ok());
  EXPECT_FALSE(Ask(Certificate("stranger")).ok());
  EXPECT_FALSE(Ask(grpc::InsecureChannelCredentials()).ok());
}

}  // namespace
}  // namespace probed::daemon
