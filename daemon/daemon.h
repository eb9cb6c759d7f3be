#pragma once
// The daemon: owns the engine, the services and the sockets, and runs the main loop.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/config.h"

namespace probed::daemon {

struct DaemonOptions {
  Config config;
  std::function<Result<Config>()> read_config;  // again on SIGHUP, for the log level
  std::optional<int> private_fd;                // serve this connected socket only, and end with it
};

// Blocks the signals that Run() takes, and SIGCHLD for the tracer. Before any thread starts.
Result<UniqueFd> BlockSignals();

class Daemon {
 public:
  // Listens when it returns. `signals` is BlockSignals()'s.
  static Result<std::unique_ptr<Daemon>> Start(DaemonOptions options, UniqueFd signals);
  ~Daemon();  // ends every call, then gives every target back

  // Until SIGTERM, SIGINT or the end of the private connection.
  Status Run();

 private:
  struct State;
  explicit Daemon(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace probed::daemon
