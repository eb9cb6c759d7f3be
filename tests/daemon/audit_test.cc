#include "daemon/audit.h"

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

const Caller kCaller{1000, 1000, false, "uid=1000", false};

TEST(Audit, SaysWhoDidWhatToWhom) {
  EXPECT_EQ(FormatAudit({kCaller, "create-probes", {12, 34}, "/usr/bin/redis-server", 3, nullptr}),
            "audit op=create-probes by=uid=1000 pid=12 start=34 exe=\"/usr/bin/redis-server\" "
            "probes=3 result=OK");
}

TEST(Audit, RefusalsCarryTheReason) {
  const Error error{ErrorCode::kPermissionDenied, "UID_MISMATCH", "", "", {}};
  EXPECT_EQ(FormatAudit({kCaller, "attach", {12, 0}, "", 0, &error}),
            "audit op=attach by=uid=1000 pid=12 start=0 exe=\"\" result=UID_MISMATCH");
}

// A program may have any name; it must not be able to write a line of its own.
TEST(Audit, NamesCannotForgeLines) {
  const std::string line =
      FormatAudit({kCaller, "attach", {1, 2}, "/tmp/a\nb\" result=OK", 0, nullptr});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find(R"(exe="/tmp/a\nb\" result=OK")"), std::string::npos);
}

}  // namespace
}  // namespace probed::daemon
