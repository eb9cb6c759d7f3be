#pragma once
// One function per verb: adds its subcommand to the command line. One file each.

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace probed::client {

struct Invocation;

void AddRun(CLI::App& app, Invocation& invocation);
void AddTrace(CLI::App& app, Invocation& invocation);
void AddAttach(CLI::App& app, Invocation& invocation);
void AddDetach(CLI::App& app, Invocation& invocation);
void AddTargets(CLI::App& app, Invocation& invocation);
void AddDefine(CLI::App& app, Invocation& invocation);
void AddDelete(CLI::App& app, Invocation& invocation);
void AddList(CLI::App& app, Invocation& invocation);
void AddEnable(CLI::App& app, Invocation& invocation);
void AddDisable(CLI::App& app, Invocation& invocation);
void AddFilter(CLI::App& app, Invocation& invocation);
void AddTrigger(CLI::App& app, Invocation& invocation);
void AddFormat(CLI::App& app, Invocation& invocation);
void AddWatch(CLI::App& app, Invocation& invocation);
void AddCheck(CLI::App& app, Invocation& invocation);
void AddExplain(CLI::App& app, Invocation& invocation);
void AddSymbols(CLI::App& app, Invocation& invocation);
void AddKernel(CLI::App& app, Invocation& invocation);
void AddSites(CLI::App& app, Invocation& invocation);
void AddProfile(CLI::App& app, Invocation& invocation);
void AddOptimization(CLI::App& app, Invocation& invocation);
void AddStatus(CLI::App& app, Invocation& invocation);
void AddCompletion(CLI::App& app, Invocation& invocation);

// In the order of --help.
inline constexpr void (*kVerbs[])(CLI::App&, Invocation&) = {
    AddRun,    AddAttach,  AddTrace,        AddDetach,  AddTargets,    AddDefine,
    AddDelete, AddList,    AddEnable,       AddDisable, AddFilter,     AddTrigger,
    AddFormat, AddWatch,   AddCheck,        AddExplain, AddSymbols,    AddKernel,
    AddSites,  AddProfile, AddOptimization, AddStatus,  AddCompletion,
};

}  // namespace probed::client
