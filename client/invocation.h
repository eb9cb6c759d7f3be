#pragma once
// What the command line asked for: options that every verb has, and the verb itself.

#include <functional>
#include <string>
#include <vector>

#include "client/endpoint.h"
#include "client/talk.h"

namespace probed::client {

struct Invocation {
  EndpointOptions endpoint;
  Color color = Color::kAuto;
  bool quiet = false;
  double timeout_seconds = 30;
  // The command of `run`, which came after "--". CLI11 never sees it.
  std::vector<std::string> command;
  // Set by the verb that was named; returns the exit status.
  std::function<int(Talk&)> action;
};

}  // namespace probed::client
