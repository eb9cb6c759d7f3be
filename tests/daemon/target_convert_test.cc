#include <gtest/gtest.h>

#include "daemon/convert/target.h"
#include "daemon/convert/text.h"

namespace probed::daemon {
namespace {

TEST(Target, ToProto) {
  engine::TargetInfo info;
  info.id = {12, 34};
  info.root = {1, 2};
  info.executable = "/bin/\xff";
  info.comm = "x";
  info.state = engine::TargetState::kExited;
  info.threads = 3;
  info.sites = 4;
  info.attach_stop_ns = 1'500'000'000;
  const v1::Target target = ToProto(info);
  EXPECT_EQ(target.name(), "targets/12-34");
  EXPECT_EQ(target.root(), "targets/1-2");
  EXPECT_EQ(target.executable(), "/bin/\\xff");
  EXPECT_EQ(target.state(), v1::Target::STATE_EXITED);
  EXPECT_EQ(target.max_stop().seconds(), 1);
  EXPECT_EQ(target.max_stop().nanos(), 500'000'000);
  info.root = info.id;
  EXPECT_EQ(ToProto(info).root(), "");
}

TEST(AttachTarget, Options) {
  v1::AttachTargetRequest request;
  EXPECT_EQ(ToOptions(request).error().reason, "INVALID_PID");
  request.set_pid(5);
  EXPECT_EQ(ToOptions(request)->deadline, std::chrono::milliseconds(5000));
  request.mutable_deadline()->set_nanos(250'000'000);
  request.set_follow_children(true);
  EXPECT_EQ(ToOptions(request)->deadline, std::chrono::milliseconds(250));
  EXPECT_TRUE(ToOptions(request)->follow_children);
  for (int64_t seconds : {int64_t{-1}, int64_t{301}, INT64_MAX / 1000}) {
    request.mutable_deadline()->set_seconds(seconds);
    EXPECT_EQ(ToOptions(request).error().reason, "INVALID_DEADLINE") << seconds;
  }
}

TEST(LaunchTarget, RunsAsTheCaller) {
  v1::LaunchTargetRequest request;
  const Caller caller{1000, 1001, false, ""};
  EXPECT_EQ(ToOptions(request, caller).error().reason, "INVALID_LAUNCH");
  request.add_argv("/bin/true");
  const auto options = ToOptions(request, caller);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->uid, 1000u);
  EXPECT_EQ(options->gid, 1001u);
  EXPECT_TRUE(options->follow_children);
  request.set_follow_children(false);
  EXPECT_FALSE(ToOptions(request, caller)->follow_children);
  request.add_environment("NOVALUE");
  EXPECT_EQ(ToOptions(request, caller).error().reason, "INVALID_LAUNCH");
}

TEST(Utf8, KeepsWhatIsWellFormed) {
  EXPECT_EQ(Utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  // Overlong, surrogate, above U+10FFFF, cut short, lone continuation.
  EXPECT_EQ(Utf8("\xc0\x80"), "\\xc0\\x80");
  EXPECT_EQ(Utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(Utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Utf8("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(Utf8("\x80z"), "\\x80z");
}

}  // namespace
}  // namespace probed::daemon
