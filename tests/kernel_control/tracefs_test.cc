#include "engine/kernel/tracefs.h"

#include <gtest/gtest.h>

#include "engine/kernel/features.h"
#include "tests/kernel_control/own_tracefs.h"

namespace probed::kernel {
namespace {

using testing::FakeTracefs;

std::string ReasonOf(const TracefsPlaces& places) {
  const auto found = Tracefs::Find(places);
  return found.ok() ? "" : found.error().reason;
}

TEST(Tracefs, IsFoundByItsMount) {
  const FakeTracefs fake;
  fake.MakeDirectory("instances");
  const auto found = Tracefs::Find(fake.Places(FakeTracefs::Mount("proc", "/proc") +
                                               FakeTracefs::Mount("tracefs", fake.root())));
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(found->root(), fake.root());
}

TEST(Tracefs, IsFoundUnderDebugfs) {
  const FakeTracefs fake;
  fake.MakeDirectory("tracing/instances");
  const auto found = Tracefs::Find(fake.Places(FakeTracefs::Mount("debugfs", fake.root())));
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(found->root(), fake.root() + "/tracing");
}

TEST(Tracefs, PrefersAWritableMount) {
  const FakeTracefs read_only, writable;
  read_only.MakeDirectory("instances");
  writable.MakeDirectory("instances");
  const auto found =
      Tracefs::Find(writable.Places(FakeTracefs::Mount("tracefs", read_only.root(), "ro") +
                                    FakeTracefs::Mount("tracefs", writable.root())));
  ASSERT_TRUE(found.ok()) << found.error().ToString();
  EXPECT_EQ(found->root(), writable.root());
}

TEST(Tracefs, SaysWhyItCannotBeUsed) {
  const FakeTracefs fake;
  EXPECT_EQ(ReasonOf(fake.Places(FakeTracefs::Mount("proc", "/proc"))), "TRACEFS_NOT_MOUNTED");
  const std::string mount = FakeTracefs::Mount("tracefs", fake.root());
  EXPECT_EQ(ReasonOf(fake.Places(mount, "none [integrity] confidentiality\n")), "TRACEFS_EMPTY");
  EXPECT_EQ(ReasonOf(fake.Places(mount, "none integrity [confidentiality]\n")), "KERNEL_LOCKDOWN");
  fake.MakeDirectory("instances");
  EXPECT_EQ(ReasonOf(fake.Places(FakeTracefs::Mount("tracefs", fake.root(), "ro"))),
            "TRACEFS_READ_ONLY");
  EXPECT_EQ(ReasonOf(fake.Places(mount, "none [integrity] confidentiality\n")), "");
}

TEST(Tracefs, NamesWhatSystemCallsRunInto) {
  const FakeTracefs fake;
  fake.MakeDirectory("instances");
  const std::string mount = FakeTracefs::Mount("tracefs", fake.root());
  const auto open = Tracefs::Find(fake.Places(mount, "[none] integrity confidentiality\n"));
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->Explain(EROFS, "write", "x").reason, "TRACEFS_READ_ONLY");
  EXPECT_EQ(open->Explain(EACCES, "write", "x").reason, "TRACEFS_PERMISSION");
  EXPECT_EQ(open->Explain(EPERM, "write", "x").reason, "TRACEFS_PERMISSION");
  EXPECT_EQ(ErrnoOf(open->Explain(EBUSY, "write", "x")), EBUSY);
  EXPECT_EQ(ErrnoOf(open->Read("missing").error()), ENOENT);
}

TEST(Features, AreTakenFromFilesAndReadme) {
  const FakeTracefs fake;
  fake.MakeDirectory("instances");
  const auto tracefs = Tracefs::Find(fake.Places(FakeTracefs::Mount("tracefs", fake.root())));
  ASSERT_TRUE(tracefs.ok());
  EXPECT_FALSE(ReadFeatures(*tracefs).Has(LineKind::kKprobe));
  fake.Write("kprobe_events", "");
  fake.Write("README",
             "\t   Format: p[:[<group>/][<event>]] <place> [<args>]\n"
             "\t           f[:[<group>/][<event>]] <func-name>[%return] [<args>]\n"
             "\t           t[:[<group>/][<event>]] <tracepoint> [<args>]\n"
             "      hist trigger\t- If set, event hits are aggregated\n");
  const Features features = ReadFeatures(*tracefs);
  EXPECT_TRUE(features.Has(LineKind::kKprobe));
  EXPECT_TRUE(features.Has(LineKind::kFprobe));
  EXPECT_TRUE(features.Has(LineKind::kTracepoint));
  EXPECT_FALSE(features.Has(LineKind::kSynthetic));
  EXPECT_TRUE(features.histograms);
  EXPECT_EQ(NotInThisKernel(LineKind::kSynthetic).reason, "NO_SYNTHETIC_EVENTS");
}

}  // namespace
}  // namespace probed::kernel
