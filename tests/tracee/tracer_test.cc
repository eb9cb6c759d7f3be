#include "tests/tracee/tracer_test.h"

#include "engine/sys/proc.h"

namespace probed::tracee {
namespace {

constexpr std::chrono::milliseconds kDeadline{5000};

std::string ReasonOf(const Status& status) {
  return status.ok() ? "" : status.error().reason;
}

}  // namespace

TracerTest::TracerTest() {
  Result<std::unique_ptr<Tracer>> tracer = Tracer::Start(observer_);
  if (tracer.ok()) tracer_ = std::move(*tracer);
}

std::string TracerTest::Attach(pid_t pid, bool follow_children) {
  std::string reason;
  tracer_->Call([&] {
    Result<Process*> process = tracer_->Attach({.pid = pid, .follow_children = follow_children});
    if (!process.ok()) reason = process.error().reason;
  });
  return reason;
}

Error TracerTest::AttachError(pid_t pid) {
  Error error;
  tracer_->Call([&] {
    Result<Process*> process = tracer_->Attach({.pid = pid});
    if (!process.ok()) error = process.error();
  });
  return error;
}

void TracerTest::Insert(pid_t pid, RemoteAddr nop) {
  auto insert = [&](Stopped& stopped) { return observer_.Insert(stopped, nop); };
  EXPECT_EQ(WithOneStopped(pid, insert), "");
}

std::string TracerTest::Detach(pid_t pid) {
  std::string reason = "PROCESS_GONE";
  tracer_->Call([&] {
    Process* process = tracer_->Find(pid);
    if (process == nullptr) return;
    auto clean = [&](Stopped& stopped) { return observer_.Remove(stopped); };
    reason = ReasonOf(tracer_->Detach(*process, clean));
  });
  return reason;
}

std::string TracerTest::WithOneStopped(pid_t pid, const std::function<Status(Stopped&)>& work) {
  std::string reason = "PROCESS_GONE";
  tracer_->Call([&] {
    Process* process = tracer_->Find(pid);
    if (process != nullptr) reason = ReasonOf(tracer_->WithOneStopped(*process, kDeadline, work));
  });
  return reason;
}

std::string ThreadStates(pid_t pid) {
  std::string states;
  Result<std::vector<pid_t>> tasks = sys::ListTasks(pid);
  if (!tasks.ok()) return states;
  for (pid_t tid : *tasks) {
    Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
    if (status.ok()) states.push_back(status->state);
  }
  return states;
}

bool IsUntraced(pid_t pid) {
  Result<std::vector<pid_t>> tasks = sys::ListTasks(pid);
  if (!tasks.ok()) return false;
  for (pid_t tid : *tasks) {
    Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
    if (status.ok() && (status->tracer_pid != 0 || status->state == 't')) return false;
  }
  return true;
}

}  // namespace probed::tracee
