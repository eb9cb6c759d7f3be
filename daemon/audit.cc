#include "daemon/audit.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace probed::daemon {

std::string FormatAudit(const AuditRecord& record) {
  std::string line = fmt::format("audit op={} by={} pid={} start={} exe={:?}", record.operation,
                                 record.caller.name, record.target.pid, record.target.start_ticks,
                                 record.executable);
  if (record.probes != 0) line += fmt::format(" probes={}", record.probes);
  line += record.error == nullptr ? " result=OK" : fmt::format(" result={}", record.error->reason);
  return line;
}

void Audit(const AuditRecord& record) {
  spdlog::info("{}", FormatAudit(record));
}

}  // namespace probed::daemon
