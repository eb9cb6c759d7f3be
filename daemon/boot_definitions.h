#pragma once
// Definitions that the daemon starts with. Those of kernel code are made at once; those of
// user-side code wait, and are made in every target that is attached to. What is refused is a
// warning in the log and stops nothing. Thread-safe once read.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace probed::daemon {

// The kernel's boot syntax (kprobe_event=): ';' between definitions, ',' for a blank.
std::vector<std::string> ParseBootParameter(std::string_view text);

// The lines of every file of `directory` that has no dot in front, in the order of names; comments
// and blank lines are left out. A directory that is not there has none.
Result<std::vector<std::string>> ReadDefinitionFiles(const std::string& directory);

class BootDefinitions {
 public:
  explicit BootDefinitions(const std::vector<std::string>& lines);

  void DefineInKernel(engine::Engine& engine) const;
  void DefineIn(engine::Engine& engine, engine::TargetId target) const;

 private:
  std::vector<std::string> kernel_, user_;
};

}  // namespace probed::daemon
