// probed: the program.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/standard_fds.h"
#include "daemon/core_dump.h"
#include "daemon/daemon.h"
#include "daemon/guard.h"
#include "daemon/logging.h"
#include "daemon/version.h"

namespace probed::daemon {
namespace {

constexpr const char* kConfigPath = "/etc/probed/probed.toml";

struct Arguments {
  std::vector<std::string> listen;
  std::optional<int> private_fd;
  std::string config_path = kConfigPath;
  std::vector<std::string> probe_events;
  std::string definitions;
  std::string log_level;
  std::string log_format;
  bool check_config = false;
  bool print_config = false;
};

void Declare(CLI::App& app, Arguments& arguments) {
  app.add_option("--listen", arguments.listen, "unix:///path or tcp://host:port; may be repeated");
  app.add_option("--private-fd", arguments.private_fd,
                 "serve this connected socket only, give every target back when it closes");
  app.add_option("--config", arguments.config_path, "configuration file; FILE.d/*.toml go over it")
      ->capture_default_str();
  app.add_option(
      "--probe-event", arguments.probe_events,
      "definitions to start with, in the syntax of the kernel's command line: ';' between "
      "two, ',' for a blank; may be repeated");
  app.add_option("--definitions", arguments.definitions,
                 "directory with files of definition lines to start with");
  app.add_option("--log-level", arguments.log_level,
                 "trace, debug, info, warning, error, critical or off");
  app.add_option("--log-format", arguments.log_format, "text or json");
  app.add_flag("--check-config", arguments.check_config, "read the configuration and end");
  app.add_flag("--print-config", arguments.print_config, "print the configuration in force");
  app.set_version_flag("--version", fmt::format("probed {}", Version()));
}

Result<Config> ConfigOf(const Arguments& arguments) {
  PROBED_TRY(Config config,
             LoadConfig(arguments.config_path, arguments.config_path != kConfigPath));
  if (!arguments.listen.empty()) config.listen = arguments.listen;
  config.definitions.probe_events.insert(config.definitions.probe_events.end(),
                                         arguments.probe_events.begin(),
                                         arguments.probe_events.end());
  if (!arguments.definitions.empty()) config.definitions.directory = arguments.definitions;
  if (!arguments.log_level.empty()) config.log_level = arguments.log_level;
  if (!arguments.log_format.empty()) config.log_format = arguments.log_format;
  PROBED_RETURN_IF_ERROR(CheckConfig(config));
  return config;
}

Status Serve(const Arguments& arguments, Config config) {
  PROBED_TRY(const auto level, ParseLogLevel(config.log_level));
  PROBED_TRY(const auto format, ParseLogFormat(config.log_format));
  PROBED_TRY(UniqueFd signals, BlockSignals());
  SetUpLogging(format, level);
  PROBED_TRY(auto daemon,
             Daemon::Start({std::move(config), [arguments] { return ConfigOf(arguments); },
                            arguments.private_fd},
                           std::move(signals)));
  return daemon->Run();
}

int Fail(const Error& error) {
  fmt::print(stderr, "probed: {}\n", error.ToString());
  return 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Puts probes into running programs and streams their events over gRPC.", "probed");
  Arguments arguments;
  Declare(app, arguments);
  CLI11_PARSE(app, argc, argv);
  auto config = ConfigOf(arguments);
  if (!config.ok()) return Fail(config.error());
  if (arguments.print_config) fmt::print("{}", PrintConfig(*config));
  if (arguments.print_config || arguments.check_config) return 0;
  const Status served = Serve(arguments, *std::move(config));
  return served.ok() ? 0 : Fail(served.error());
}

}  // namespace
}  // namespace probed::daemon

int main(int argc, char** argv) {
  probed::OpenStandardFds();
  probed::daemon::LetACopyDumpCore();
  if (argc == 3 && std::strcmp(argv[1], probed::daemon::kGuardOption) == 0) {
    return probed::daemon::RunGuard(argv[2]);
  }
  int status = probed::daemon::Main(argc, argv);
  std::fflush(nullptr);
  // Everything has been given back. gRPC 1.51's global destructors can wait ten seconds for a poll
  // of their own (Executor::ShutdownAll), and probectl waits for us.
  std::_Exit(status);
}
