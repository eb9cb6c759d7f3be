// probectl completion: a completion script made from the command line's own description, so that it
// cannot fall behind.

#include <fmt/format.h>

#include <memory>

#include "client/lines.h"
#include "client/verbs/options.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

std::string OptionWords(const CLI::App& verb) {
  std::string words;
  for (const CLI::Option* option : verb.get_options()) {
    for (const auto& name : option->get_lnames())
      words += fmt::format(" --{}", name);
  }
  for (const CLI::App* group : verb.get_subcommands(nullptr)) {
    if (group->get_name().empty()) words += OptionWords(*group);
  }
  return words;
}

std::string BashScript(const CLI::App& app) {
  std::string verbs, cases;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) {
    verbs += fmt::format(" {}", verb->get_name());
    cases += fmt::format("    {}) words=\"{}\" ;;\n", verb->get_name(), OptionWords(*verb));
  }
  return fmt::format(
      R"(# bash completion for probectl
_probectl() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "{} --help --version" -- "$word")
    return
  fi
  case $before in
    --format) words="trace json" ;;
    --dialect) words="kernel extended" ;;
    --color) words="auto always never" ;;
    -p|--pid) words=$(cd /proc && echo [0-9]*) ;;
  esac
  if [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F _probectl probectl)",
      verbs, cases);
}

}  // namespace

void AddCompletion(CLI::App& app, Invocation& invocation) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion",
                                      "Print a completion script.\n"
                                      "Example: source <(probectl completion bash)");
  verb->callback([shell, &app, &invocation] {
    invocation.action = [&app](Talk&) {
      PrintLine(BashScript(app));
      return static_cast<int>(ExitCode::kOk);
    };
  });
  verb->add_option("SHELL", *shell, "bash")->required()->check(OneOf({"bash"}))->type_name("");
}

}  // namespace probed::client
