#pragma once
// Starting a program as a target, held before its first instruction. Tracer thread only.

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/sys/spawn.h"
#include "engine/tracee/attach.h"
#include "engine/tracee/quiesce.h"
#include "engine/tracee/registry.h"

namespace probed::tracee {

struct LaunchRequest {
  std::vector<std::string> argv;
  std::vector<std::string> environment;
  std::string working_directory;
  uid_t uid = 0;
  gid_t gid = 0;
  bool follow_children = true;
};

class Launcher {
 public:
  Launcher(Registry& registry, Attacher& attacher, Quiescer& quiescer)
      : registry_(registry), attacher_(attacher), quiescer_(quiescer) {}

  // The process is held once (Quiescer::ReleaseAll lets it run).
  Result<Process*> Launch(const LaunchRequest& request);

 private:
  Status RunToExec(Process& process, sys::SpawnedChild& child);

  Registry& registry_;
  Attacher& attacher_;
  Quiescer& quiescer_;
};

}  // namespace probed::tracee
