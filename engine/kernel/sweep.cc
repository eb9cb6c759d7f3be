#include "engine/kernel/sweep.h"

#include <unistd.h>

#include <cerrno>
#include <set>

#include "engine/kernel/dynamic_events.h"
#include "engine/kernel/instance.h"
#include "engine/kernel/owner.h"

namespace probed::kernel {
namespace {

// Synthetic events have no group of their own, so their names carry the prefix.
std::optional<Owner> WhoDefined(const DynamicEvent& event) {
  auto owner = OwnerOf(event.group);
  return owner ? owner : OwnerOf(event.event);
}

void RemoveInstance(const Tracefs& tracefs, const std::string& directory, SweepReport& report) {
  const UniqueFd lock = LockIfAbandoned(tracefs, directory);
  if (!lock.valid()) return;
  if (rmdir(tracefs.Path(directory).c_str()) == 0) {
    ++report.instances;
  } else {
    report.errors.push_back(tracefs.Explain(errno, "remove", directory));
  }
}

}  // namespace

// Definitions are read first: an owner that was alive then has its instance still, or has taken
// its definitions along. They are removed last: while an instance has them enabled they are busy.
SweepReport SweepAbandoned(const Tracefs& tracefs) {
  SweepReport report;
  const auto events = ListDynamicEvents(tracefs);
  for (const std::string& name : tracefs.Directories("instances")) {
    if (ParseInstanceName(name)) RemoveInstance(tracefs, "instances/" + name, report);
  }
  std::set<std::pair<std::string, std::string>> removed;
  for (const DynamicEvent& event : events) {
    const auto owner = WhoDefined(event);
    if (!owner || tracefs.Has("instances/" + InstanceName(*owner))) continue;
    if (!removed.emplace(event.group, event.event).second) continue;
    const Status status = RemoveDynamicEvent(tracefs, event.group, event.event);
    if (status.ok()) {
      ++report.definitions;
    } else if (ErrnoOf(status.error()) != ENOENT) {
      report.errors.push_back(status.error());
    }
  }
  return report;
}

}  // namespace probed::kernel
