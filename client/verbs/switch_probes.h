#pragma once
// What `enable` and `disable` share.

#include <string>

namespace CLI {
class App;
}

namespace probed::client {

struct Invocation;
enum class Switch : bool { kOff, kOn };

void AddSwitchVerb(CLI::App& app, Invocation& invocation, const std::string& name,
                   const std::string& description, Switch wanted);

}  // namespace probed::client
