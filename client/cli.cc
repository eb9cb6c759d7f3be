#include "client/cli.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

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

// Cuts off what follows the first "--", which CLI11 would mix with the verb's own words.
std::vector<std::string> TakeArguments(int argc, char** argv, Invocation& invocation) {
  std::vector<std::string> own(argv + 1, argv + argc);
  auto mark = std::find(own.begin(), own.end(), "--");
  if (mark == own.end()) return own;
  invocation.command.assign(mark + 1, own.end());
  own.erase(mark, own.end());
  return own;
}

int Parse(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes a vector
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too, with code 0.
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
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
