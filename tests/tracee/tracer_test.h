#pragma once
// A tracer with a BreakpointObserver, and the calls of Tracer made from the test's thread.

#include <gtest/gtest.h>

#include <memory>

#include "engine/tracee/tracer.h"
#include "tests/tracee/breakpoint_observer.h"
#include "tests/tracee/puppet.h"

namespace probed::tracee {

class TracerTest : public testing::Test {
 protected:
  TracerTest();

  // What Attach() answered: empty for success, else the reason.
  std::string Attach(pid_t pid, bool follow_children = false);
  Error AttachError(pid_t pid);
  void Insert(pid_t pid, RemoteAddr nop);
  std::string Detach(pid_t pid);
  std::string WithOneStopped(pid_t pid, const std::function<Status(Stopped&)>& work);

  BreakpointObserver observer_;
  std::unique_ptr<Tracer> tracer_;
};

// State letters of all threads, from /proc.
std::string ThreadStates(pid_t pid);
// Whether no thread of the process is traced, nor stopped by a tracer.
bool IsUntraced(pid_t pid);

}  // namespace probed::tracee
