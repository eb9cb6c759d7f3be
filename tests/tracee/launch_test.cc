#include "engine/sys/proc.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

LaunchRequest Command(std::vector<std::string> argv) {
  LaunchRequest request;
  request.argv = std::move(argv);
  return request;
}

TEST_F(TracerTest, LaunchHoldsTheProgramBeforeItsFirstInstruction) {
  pid_t pid = 0;
  tracer_->Call([&] {
    Result<Process*> process = tracer_->Launch(Command({"true"}));
    ASSERT_TRUE(process.ok()) << process.error().ToString();
    pid = (*process)->pid();
  });
  EXPECT_EQ(observer_.events(), std::vector<std::string>{"exec " + std::to_string(pid)});
  EXPECT_EQ(ThreadStates(pid), "t");
  EXPECT_EQ(sys::ReadComm(pid), "true");
  tracer_->Call([&] { tracer_->Resume(*tracer_->Find(pid)); });
  EXPECT_TRUE(
      Eventually([&] { return observer_.Saw("exit " + std::to_string(pid) + " status 0"); }));
}

TEST_F(TracerTest, LaunchOfNothingSaysWhy) {
  Error error;
  tracer_->Call([&] {
    Result<Process*> process = tracer_->Launch(Command({"/no/such/program"}));
    ASSERT_FALSE(process.ok());
    error = process.error();
  });
  EXPECT_EQ(error.reason, "EXEC_FAILED");
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace probed::tracee
