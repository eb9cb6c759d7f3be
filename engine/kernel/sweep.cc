#include "engine/kernel/sweep.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <thread>

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

using Name = std::pair<std::string, std::string>;

// What stood on something that has gone may be busy for a moment still: the kernel lets go of an
// event probe's event some milliseconds after the event probe (Linux 6.1).
constexpr int kPauses = 50;
constexpr std::chrono::milliseconds kPause{10};

// One may stand on another, which is busy for as long: whatever has gone makes others free to go.
void RemoveDefinitions(const Tracefs& tracefs, std::set<Name> left, SweepReport& report) {
  std::vector<Error> errors;
  for (int pauses = 0; !left.empty() && pauses <= kPauses;) {
    const size_t before = left.size();
    errors.clear();
    std::erase_if(left, [&](const Name& name) {
      const Status status = RemoveDynamicEvent(tracefs, name.first, name.second);
      if (status.ok()) ++report.definitions;
      const bool gone = status.ok() || ErrnoOf(status.error()) == ENOENT;
      if (!gone) errors.push_back(status.error());
      return gone;
    });
    if (left.empty() || left.size() < before) continue;
    ++pauses;
    std::this_thread::sleep_for(kPause);
  }
  report.errors.insert(report.errors.end(), errors.begin(), errors.end());
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
  std::set<Name> left;
  for (const DynamicEvent& event : events) {
    const auto owner = WhoDefined(event);
    if (owner && !tracefs.Has("instances/" + InstanceName(*owner)))
      left.emplace(event.group, event.event);
  }
  RemoveDefinitions(tracefs, std::move(left), report);
  return report;
}

}  // namespace probed::kernel
