#pragma once
// Configuration: defaults, then /etc/probed/probed.toml, then probed.toml.d/*.toml in order of
// name; the command line goes over it. A key that is not known is an error, with its line and
// column.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace probed::daemon {

struct TlsConfig {
  std::string cert;  // PEM files
  std::string key;
  std::string client_ca;  // whoever has a certificate of this authority is an admin
};

struct Limits {
  int64_t max_targets = 1024;
  int64_t max_probes = 200'000;
  int64_t max_connections = 256;
  int64_t max_streams = 64;              // calls at a time on one connection
  int64_t max_threads = 128;             // calls at a time in all
  int64_t max_message_bytes = 16 << 20;  // a request; 10,000 long definitions fit
  int64_t max_queue_bytes = 256 << 20;   // of one subscriber
  int64_t max_silence_seconds = 30;      // of the tracer thread: then the daemon ends
};

struct OptimizationConfig {
  bool enabled = true;            // jumps instead of breakpoints where that is proven safe
  int64_t ring_bytes = 64 << 20;  // shared with each process that has such jumps
};

struct DefinitionsConfig {
  std::string directory = "/etc/probed/definitions.d";  // files of lines; it need not exist
  std::vector<std::string> probe_events;  // in the syntax of the kernel's command line
};

struct Config {
  std::vector<std::string> listen;  // empty: the default socket, or what systemd passes
  std::string socket_group = "probed";
  std::string admin_group = "probed-admin";
  std::string log_level = "info";
  std::string log_format = "text";
  TlsConfig tls;
  Limits limits;
  OptimizationConfig optimization;
  DefinitionsConfig definitions;
};

// Takes `text` over `config`. `source` names it in errors. Reasons: CONFIG_SYNTAX,
// CONFIG_UNKNOWN_KEY, CONFIG_TYPE, CONFIG_RANGE; metadata "line" and "column".
Status ParseConfig(std::string_view text, const std::string& source, Config& config);

// `path` need not exist unless `required`; path + ".d" holds the drop-ins.
Result<Config> LoadConfig(const std::string& path, bool required);

// What does not fit together: TCP without TLS, a level that is none.
Status CheckConfig(const Config& config);

std::string PrintConfig(const Config& config);  // TOML that ParseConfig takes back

}  // namespace probed::daemon
