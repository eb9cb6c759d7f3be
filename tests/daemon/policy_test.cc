#include "daemon/access/policy.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "daemon/access/authorizer.h"
#include "daemon/access/file_access.h"
#include "engine/engine.h"
#include "tests/support/fork.h"

namespace probed::daemon {
namespace {

const Caller kUser{.uid = 1000, .gid = 1000, .admin = false, .name = "", .traces_all = false};

ProcessCredentials OwnProcess() {
  ProcessCredentials process;
  process.uids = {1000, 1000, 1000};
  process.gids = {1000, 1000, 1000};
  process.dumpable = true;
  return process;
}

std::string ReasonOf(const Caller& caller, const ProcessCredentials& process, int yama = 0) {
  const Status status = MayTrace(caller, process, yama);
  if (status.ok()) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kPermissionDenied);
  return status.error().reason;
}

TEST(MayTrace, OwnOrdinaryProcess) {
  EXPECT_EQ(ReasonOf(kUser, OwnProcess()), "");
}

TEST(MayTrace, WhoHasTheCapabilityAllProcesses) {
  Caller caller = kUser;
  caller.traces_all = true;
  ProcessCredentials process = OwnProcess();
  process.uids = {0, 0, 0};
  process.permitted_capabilities = ~uint64_t{0};
  EXPECT_EQ(ReasonOf(kUser, process), "UID_MISMATCH");
  EXPECT_EQ(ReasonOf(caller, process, 2), "");
}

TEST(MayTrace, EveryIdMustMatch) {
  for (size_t i = 0; i < 3; ++i) {
    ProcessCredentials process = OwnProcess();
    process.uids[i] = 0;
    EXPECT_EQ(ReasonOf(kUser, process), "UID_MISMATCH") << i;
    process = OwnProcess();
    process.gids[i] = 4;
    EXPECT_EQ(ReasonOf(kUser, process), "UID_MISMATCH") << i;
  }
}

TEST(MayTrace, NotMoreCapable) {
  ProcessCredentials process = OwnProcess();
  process.permitted_capabilities = 1u << 10;
  EXPECT_EQ(ReasonOf(kUser, process), "MISSING_CAPABILITY");
}

// It is root there, with all capabilities, and has other ids if the owner has sub-ids.
TEST(MayTrace, InAUserNamespaceItsOwnerMay) {
  ProcessCredentials process = OwnProcess();
  process.permitted_capabilities = ~uint64_t{0};
  process.uids = {100'000, 100'000, 100'000};
  process.dumpable = false;
  process.namespace_owner = 1000;
  EXPECT_EQ(ReasonOf(kUser, process, 2), "");
  process.namespace_owner = 1001;
  EXPECT_EQ(ReasonOf(kUser, process), "UID_MISMATCH");
  process = OwnProcess();
  process.namespace_owner = 1001;
  EXPECT_EQ(ReasonOf(kUser, process), "MISSING_CAPABILITY");
}

TEST(MayTrace, NotWhatHidesItself) {
  ProcessCredentials process = OwnProcess();
  process.dumpable = false;
  EXPECT_EQ(ReasonOf(kUser, process), "NOT_DUMPABLE");
}

TEST(MayTrace, YamaLeavesScopeTwoToAdmins) {
  EXPECT_EQ(ReasonOf(kUser, OwnProcess(), 1), "");
  EXPECT_EQ(ReasonOf(kUser, OwnProcess(), 2), "YAMA_SCOPE");
}

TEST(MayTrace, AdminsMay) {
  ProcessCredentials process;
  process.permitted_capabilities = ~0ull;
  EXPECT_EQ(ReasonOf({.uid = 1000, .gid = 1000, .admin = true, .name = ""}, process, 2), "");
}

// The kernel's own account of a process: this one.
TEST(ReadCredentials, OfThisProcess) {
  const auto process = ReadCredentials(getpid());
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(process->uids[0], getuid());
  EXPECT_EQ(process->uids[1], geteuid());
  EXPECT_EQ(process->gids[0], getgid());
  EXPECT_GT(process->start_ticks, 0u);
  EXPECT_TRUE(process->dumpable);
}

// A child with other ids: its /proc files go to root once it is not dumpable, and that is told.
TEST(ReadCredentials, SeesDumpability) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = ForkOrDie();
  if (child == 0) {
    char byte = 0;
    const bool ok = setresgid(1234, 1234, 1234) == 0 && setresuid(1234, 1234, 1234) == 0 &&
                    prctl(PR_SET_DUMPABLE, 1) == 0 && write(ready[1], "a", 1) == 1 &&
                    read(go[0], &byte, 1) == 1 && prctl(PR_SET_DUMPABLE, 0) == 0 &&
                    write(ready[1], "b", 1) == 1 && read(go[0], &byte, 1) == 1;
    _exit(ok ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  auto process = ReadCredentials(child);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(process->uids[1], 1234u);
  EXPECT_TRUE(process->dumpable);
  ASSERT_EQ(write(go[1], "x", 1), 1);
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  process = ReadCredentials(child);
  ASSERT_TRUE(process.ok());
  EXPECT_FALSE(process->dumpable);
  EXPECT_EQ(ReasonOf({.uid = 1234, .gid = 1234, .admin = false, .name = ""}, *process),
            "NOT_DUMPABLE");
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Files in /proc of a process without memory are root's: that says nothing of its being dumpable.
TEST(Authorizer, WhatHasEndedIsStillItsOwners) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const pid_t child = ForkOrDie();
  if (child == 0)
    _exit(setresgid(1000, 1000, 1000) == 0 && setresuid(1000, 1000, 1000) == 0 ? 0 : 1);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const auto zombie = ReadCredentials(child);
  ASSERT_TRUE(zombie.ok());
  EXPECT_TRUE(zombie->ended);
  EXPECT_EQ(MayTrace(kUser, *zombie, 0).error().reason, "PROCESS_NOT_FOUND");
  Authorizer authorizer;
  const event::TargetId target{child, zombie->start_ticks};
  EXPECT_EQ(authorizer.CheckTarget(kUser, target).error().reason, "TARGET_NOT_VISIBLE");
  authorizer.Remember(target, kUser);
  EXPECT_TRUE(authorizer.CheckTarget(kUser, target).ok());
  Caller other = kUser;
  other.uid = 1001;
  EXPECT_EQ(authorizer.CheckTarget(other, target).error().reason, "TARGET_NOT_VISIBLE");
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(ReadCredentials, NoSuchProcess) {
  EXPECT_EQ(ReadCredentials(0x7ffffff0).error().reason, "PROCESS_NOT_FOUND");
}

TEST(Authorizer, TheKernelIsForAdmins) {
  const Authorizer authorizer;
  const Status refused = authorizer.CheckTarget(kUser, engine::kKernelTarget);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().reason, "KERNEL_PROBES_NEED_ADMIN");
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  Caller admin = kUser;
  admin.admin = true;
  EXPECT_TRUE(authorizer.CheckTarget(admin, engine::kKernelTarget).ok());
}

TEST(CallerOfSocket, KernelTellsThePeer) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const auto caller = CallerOfSocket(pair[0], "");
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(caller->uid, getuid());
  EXPECT_EQ(caller->gid, getgid());
  EXPECT_EQ(caller->admin, getuid() == 0);
  close(pair[0]);
  close(pair[1]);
}

TEST(CheckReadable, FollowsPermissionBits) {
  EXPECT_TRUE(CheckReadable(kUser, "/bin/ls", std::nullopt).ok());
  for (const char* path : {"/etc/shadow", "/root/x", "/no/such/file", "bin/ls", ""})
    EXPECT_EQ(CheckReadable(kUser, path, std::nullopt).error().reason, "FILE_NOT_READABLE") << path;
}

}  // namespace
}  // namespace probed::daemon
