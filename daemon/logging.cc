#include "daemon/logging.h"

#include <cstdlib>
#include <ctime>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace probed::daemon {
namespace {

// sd-daemon(3) prefixes.
int JournalPriority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
      return 2;
    case spdlog::level::err:
      return 3;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::info:
      return 6;
    default:
      return 7;
  }
}

std::string JsonEscaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out;
}

std::string UtcTime(int64_t wall_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const std::time_t seconds = wall_ns / kSecond;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds),
                     wall_ns % kSecond / 1'000'000);
}

std::string_view LevelName(spdlog::level::level_enum level) {
  const auto name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

class Formatter : public spdlog::formatter {
 public:
  explicit Formatter(LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto wall =
        std::chrono::duration_cast<std::chrono::nanoseconds>(message.time.time_since_epoch());
    const std::string line = FormatLog(
        format_,
        {message.level, std::string(message.payload.data(), message.payload.size()), wall.count()});
    out.append(line.data(), line.data() + line.size());
    out.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<Formatter>(format_);
  }

 private:
  LogFormat format_;
};

}  // namespace

std::string FormatLog(LogFormat format, const LogRecord& record) {
  switch (format) {
    case LogFormat::kJournal:
      return fmt::format("<{}>{}", JournalPriority(record.level), record.message);
    case LogFormat::kJson:
      return fmt::format(R"({{"time":"{}","level":"{}","message":"{}"}})", UtcTime(record.wall_ns),
                         LevelName(record.level), JsonEscaped(record.message));
    case LogFormat::kText:
      break;
  }
  return fmt::format("{} {:<8} {}", UtcTime(record.wall_ns), LevelName(record.level),
                     record.message);
}

Result<spdlog::level::level_enum> ParseLogLevel(const std::string& text) {
  const auto level = spdlog::level::from_str(text);
  if (level != spdlog::level::off || text == "off") return level;
  return Error{ErrorCode::kInvalidArgument,
               "INVALID_LOG_LEVEL",
               fmt::format("\"{}\" is not a log level", text),
               "trace, debug, info, warning, error, critical or off",
               {}};
}

Result<LogFormat> ParseLogFormat(const std::string& text) {
  if (text == "json") return LogFormat::kJson;
  if (text == "text")
    return std::getenv("JOURNAL_STREAM") != nullptr ? LogFormat::kJournal : LogFormat::kText;
  return Error{ErrorCode::kInvalidArgument,
               "INVALID_LOG_FORMAT",
               fmt::format("\"{}\" is not a log format", text),
               "text or json",
               {}};
}

void SetUpLogging(LogFormat format, spdlog::level::level_enum level) {
  auto logger = spdlog::stderr_logger_mt("probed");
  logger->set_formatter(std::make_unique<Formatter>(format));
  logger->set_level(level);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace probed::daemon
