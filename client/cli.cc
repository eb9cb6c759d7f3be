#include "client/cli.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "client/command_line_error.h"
#include "client/command_words.h"
#include "client/invocation.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

constexpr char kDescription[] =
    "Put probes into running programs and watch them.\n"
    "Example: probectl attach --pid 1234 -e 'p:my/open libc.so.6:open64 path=+0(%di):string'";

void BuildApp(CLI::App& app, Invocation& invocation) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("probectl ") + PROBED_VERSION);
  app.get_formatter()->column_width(34);
  for (auto add : kVerbs)
    add(app, invocation);
}

// Cuts off the command of `run`, which CLI11 would mix with the verb's own words.
std::vector<std::string> TakeArguments(int argc, char** argv, Invocation& invocation) {
  std::vector<std::string> own(argv + 1, argv + argc);
  auto mark = std::find(own.begin(), own.end(), "--");
  if (mark == own.end() || own.front() != "run") return own;
  invocation.command.assign(mark + 1, own.end());
  own.erase(mark, own.end());
  return own;
}

int Parse(CLI::App& app, const std::vector<std::string>& typed) {
  const std::vector<std::string> arguments = WithJoinedPids(app, typed);
  if (auto missing = FindMissingValue(app, arguments)) {
    Talk talk(Color::kAuto, false);
    return static_cast<int>(talk.Fail(*missing));
  }
  try {
    // The order in which CLI11 takes a vector.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too.
    if (error.get_exit_code() == 0) return app.exit(error);
    Talk talk(Color::kAuto, false);
    return static_cast<int>(talk.Fail(DescribeParseError(app, error, arguments)));
  }
  return -1;
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  Invocation invocation;
  CLI::App app(kDescription, "probectl");
  BuildApp(app, invocation);
  if (int status = Parse(app, TakeArguments(argc, argv, invocation)); status >= 0) return status;
  // A reader that went away shows as EPIPE.
  std::signal(SIGPIPE, SIG_IGN);
  Talk talk(invocation.color, invocation.quiet);
  return invocation.action(talk);
}

}  // namespace probed::client
