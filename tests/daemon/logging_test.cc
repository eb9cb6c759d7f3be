#include "daemon/logging.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

constexpr int64_t kWall = 1'700'000'000'123'456'789;

TEST(FormatLog, Text) {
  EXPECT_EQ(FormatLog(LogFormat::kText, {spdlog::level::warn, "careful", kWall}),
            "2023-11-14T22:13:20.123Z warning  careful");
}

TEST(FormatLog, JournalHasPriorityAndNoTime) {
  EXPECT_EQ(FormatLog(LogFormat::kJournal, {spdlog::level::err, "bad", kWall}), "<3>bad");
  EXPECT_EQ(FormatLog(LogFormat::kJournal, {spdlog::level::debug, "x", kWall}), "<7>x");
}

TEST(FormatLog, JsonIsEscaped) {
  EXPECT_EQ(FormatLog(LogFormat::kJson, {spdlog::level::info, "a \"b\"\\\n", kWall}),
            R"({"time":"2023-11-14T22:13:20.123Z","level":"info","message":"a \"b\"\\\u000a"})");
}

TEST(ParseLog, LevelsAndFormats) {
  EXPECT_EQ(ParseLogLevel("debug").value(), spdlog::level::debug);
  EXPECT_EQ(ParseLogLevel("off").value(), spdlog::level::off);
  EXPECT_EQ(ParseLogLevel("loud").error().reason, "INVALID_LOG_LEVEL");
  EXPECT_EQ(ParseLogFormat("json").value(), LogFormat::kJson);
  EXPECT_EQ(ParseLogFormat("xml").error().reason, "INVALID_LOG_FORMAT");
  unsetenv("JOURNAL_STREAM");
  EXPECT_EQ(ParseLogFormat("text").value(), LogFormat::kText);
  setenv("JOURNAL_STREAM", "8:1", 1);
  EXPECT_EQ(ParseLogFormat("text").value(), LogFormat::kJournal);
  unsetenv("JOURNAL_STREAM");
}

}  // namespace
}  // namespace probed::daemon
