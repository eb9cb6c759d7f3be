#pragma once
// The audit log: one line for every attach, launch, detach and change of probes of one target, and
// for those that were refused by permission or by the engine.

#include <string>
#include <string_view>

#include "base/error.h"
#include "daemon/access/caller.h"
#include "engine/event/event.h"

namespace probed::daemon {

struct AuditRecord {
  const Caller& caller;
  std::string_view operation;  // "attach", "create-probes"...
  event::TargetId target;
  std::string executable;  // may be empty when the target is not known
  size_t probes = 0;
  const Error* error = nullptr;  // nullptr: done
};

// key=value, values of unknown origin quoted and escaped. Pure.
std::string FormatAudit(const AuditRecord& record);
void Audit(const AuditRecord& record);

}  // namespace probed::daemon
