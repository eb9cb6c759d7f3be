#include "daemon/config.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

Error ErrorOf(std::string_view text) {
  Config config;
  const Status status = ParseConfig(text, "test.toml", config);
  EXPECT_FALSE(status.ok()) << text;
  return status.ok() ? Error{} : status.error();
}

TEST(Config, EveryKey) {
  Config config;
  ASSERT_TRUE(ParseConfig(R"(
listen = ["unix:///tmp/a", "tcp://0.0.0.0:1"]
[access]
socket_group = "g"
admin_group = "a"
[log]
level = "debug"
format = "json"
[tls]
cert = "c"
key = "k"
client_ca = "ca"
[limits]
max_targets = 1
max_probes = 2
max_connections = 3
max_streams = 4
max_threads = 5
max_message_bytes = 6
max_queue_bytes = 7
max_silence_seconds = 8
)",
                          "test.toml", config)
                  .ok());
  EXPECT_EQ(config.listen, (std::vector<std::string>{"unix:///tmp/a", "tcp://0.0.0.0:1"}));
  EXPECT_EQ(config.socket_group, "g");
  EXPECT_EQ(config.admin_group, "a");
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.log_format, "json");
  EXPECT_EQ(config.tls.client_ca, "ca");
  EXPECT_EQ(config.limits.max_targets, 1);
  EXPECT_EQ(config.limits.max_queue_bytes, 7);
  EXPECT_EQ(config.limits.max_silence_seconds, 8);
}

TEST(Config, PrintedFormIsReadBack) {
  Config config;
  config.listen = {"unix:///tmp/\"quoted\""};
  config.limits.max_probes = 77;
  Config back;
  ASSERT_TRUE(ParseConfig(PrintConfig(config), "printed", back).ok()) << PrintConfig(config);
  EXPECT_EQ(back.listen, config.listen);
  EXPECT_EQ(back.limits.max_probes, 77);
  EXPECT_EQ(PrintConfig(back), PrintConfig(config));
}

TEST(Config, UnknownKeyHasAPosition) {
  const Error error = ErrorOf("[log]\n  levle = \"debug\"\n");
  EXPECT_EQ(error.reason, "CONFIG_UNKNOWN_KEY");
  EXPECT_EQ(error.message, "test.toml:2:3: unknown key \"log.levle\"");
  EXPECT_EQ(error.metadata.at("line"), "2");
  EXPECT_EQ(error.metadata.at("column"), "3");
}

TEST(Config, UnknownTableNamesItsFirstKey) {
  EXPECT_NE(ErrorOf("[tsl]\ncert = \"x\"\n").message.find("test.toml:2:1"), std::string::npos);
}

TEST(Config, SyntaxErrorHasAPosition) {
  const Error error = ErrorOf("listen = [\n\"a\"\n");
  EXPECT_EQ(error.reason, "CONFIG_SYNTAX");
  EXPECT_TRUE(error.message.starts_with("test.toml:")) << error.message;
}

TEST(Config, TypesAndRanges) {
  EXPECT_EQ(ErrorOf("listen = \"unix:///x\"").reason, "CONFIG_TYPE");
  EXPECT_EQ(ErrorOf("listen = [1]").reason, "CONFIG_TYPE");
  EXPECT_EQ(ErrorOf("log = 1").reason, "CONFIG_UNKNOWN_KEY");
  EXPECT_EQ(ErrorOf("[limits]\nmax_probes = \"1\"").reason, "CONFIG_TYPE");
  EXPECT_EQ(ErrorOf("[limits]\nmax_probes = 0").reason, "CONFIG_RANGE");
  EXPECT_EQ(ErrorOf("[limits]\nmax_probes = 4294967296").reason, "CONFIG_RANGE");
}

TEST(Config, TcpNeedsClientCertificates) {
  Config config;
  config.listen = {"tcp://127.0.0.1:1"};
  EXPECT_EQ(CheckConfig(config).error().reason, "TLS_REQUIRED");
  config.tls = {"c", "k", ""};
  EXPECT_EQ(CheckConfig(config).error().reason, "TLS_REQUIRED");
  config.tls.client_ca = "ca";
  EXPECT_TRUE(CheckConfig(config).ok());
}

TEST(Config, DefaultsAreFine) {
  EXPECT_TRUE(CheckConfig(Config()).ok());
}

TEST(Config, DropInsGoOverTheFileByName) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("probed-config-" + std::to_string(getpid()));
  const std::string path = folder / "probed.toml";
  std::filesystem::create_directories(path + ".d");
  std::ofstream(path) << "[log]\nlevel = \"error\"\n[limits]\nmax_probes = 1\n";
  std::ofstream(path + ".d/20.toml") << "[log]\nlevel = \"trace\"\n";
  std::ofstream(path + ".d/10.toml") << "[log]\nlevel = \"debug\"\n";
  std::ofstream(path + ".d/30.conf") << "not read";
  const auto config = LoadConfig(path, true);
  ASSERT_TRUE(config.ok()) << config.error().ToString();
  EXPECT_EQ(config->log_level, "trace");
  EXPECT_EQ(config->limits.max_probes, 1);
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(LoadConfig(path, true).ok());
  EXPECT_TRUE(LoadConfig(path, false).ok());
}

}  // namespace
}  // namespace probed::daemon
