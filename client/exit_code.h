#pragma once
// What probectl's exit status means: one code per family of errors, so that scripts need no text.

#include <string_view>

#include "base/error.h"

namespace probed::client {

enum class ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,    // the command line, or a definition in it
  kConnect = 3,  // no daemon, or the connection was lost
  kPermission = 4,
  kNotFound = 5,
  kPrecondition = 6,  // already there, already traced, wrong state
  kPartial = 7,       // some of what was asked for was done
  kTimeout = 124,
  kCannotExecute = 126,    // run: the command was found but could not be started
  kCommandNotFound = 127,  // run: no such command
  kInterrupted = 130,      // interrupted before the clean-up was complete
};

ExitCode ExitCodeFor(ErrorCode code);

// One word for documentation and tests: "ok", "usage"...
std::string_view ExitCodeName(ExitCode code);

// The exit status of a shell for a wait(2) status: the status itself, or 128 + signal.
int StatusToExit(int wait_status);

}  // namespace probed::client
