#pragma once
// The command line of probectl: parses, then runs the one verb. Never throws.

namespace probed::client {

// The whole program; returns the exit status.
int RunCommandLine(int argc, char** argv);

}  // namespace probed::client
