#pragma once
// The log of the daemon: stderr, plain text, journald's form (priority, no time) or JSON lines.

#include <string>

#include <spdlog/common.h>

#include "base/result.h"

namespace probed::daemon {

enum class LogFormat { kText, kJournal, kJson };

struct LogRecord {
  spdlog::level::level_enum level = spdlog::level::info;
  std::string message;
  int64_t wall_ns = 0;
};

// One line without the newline. Pure.
std::string FormatLog(LogFormat format, const LogRecord& record);

Result<spdlog::level::level_enum> ParseLogLevel(const std::string& text);
// "text" (journald's form when stderr is the journal) or "json".
Result<LogFormat> ParseLogFormat(const std::string& text);

void SetUpLogging(LogFormat format, spdlog::level::level_enum level);

}  // namespace probed::daemon
