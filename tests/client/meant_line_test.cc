#include "client/meant_line.h"

#include <gtest/gtest.h>

namespace probed::client {
namespace {

using lang::Dialect;

v1::LineVerdict VerdictOn(const std::string& command, int caret) {
  v1::LineVerdict verdict;
  verdict.set_command(command);
  verdict.set_caret(caret);
  return verdict;
}

TEST(MeantLine, OfOtherToolsAndOfTheKernelsFunctions) {
  const auto meant = [](const std::string& line) {
    return MeantLine(line, Dialect::kExtended, "/bin/prog");
  };
  EXPECT_EQ(meant("p:my/w work n=%di"), "p:my/w /bin/prog:work n=%di");
  EXPECT_EQ(meant("r work"), "r /bin/prog:work");
  EXPECT_EQ(MeantLine("p work", Dialect::kExtended, ""), "p PATH:work");
  EXPECT_EQ(meant("uprobe:/bin/x:main"), "p /bin/x:main");
  EXPECT_EQ(meant("uprobe:/bin/x:main /arg0 > 1/ { printf(\"x\") }"), "p /bin/x:main");
  EXPECT_EQ(meant("uretprobe:libc:malloc"), "r libc:malloc");
  EXPECT_EQ(meant("uprobe:/bin/x:main { }"), "p /bin/x:main");
  EXPECT_EQ(meant("/bin/x:main"), "p /bin/x:main");
  EXPECT_EQ(meant("libc.so.6:malloc size=%di"), "p libc.so.6:malloc size=%di");
  EXPECT_EQ(meant("prog:work"), "p prog:work");
  EXPECT_EQ(meant("p my/w /bin/x:main n=%di"), "p:my/w /bin/x:main n=%di");
  EXPECT_EQ(meant("p: my/w /bin/x:main"), "p:my/w /bin/x:main");
  EXPECT_EQ(meant("p :w /bin/x:main"), "p:w /bin/x:main");
  EXPECT_EQ(meant("r:/bin/x:main"), "r /bin/x:main");
  EXPECT_EQ(meant("p:prog:main"), "p prog:main");
  EXPECT_EQ(meant("p:x y /bin/x:main"), "");
  EXPECT_EQ(meant("r8 w x:main"), "r8:w x:main");
  EXPECT_EQ(meant("my/w /bin/x:main"), "p:my/w /bin/x:main");
  EXPECT_EQ(meant("P:my/w ./x:main n=%di"), "p:my/w ./x:main n=%di");
  EXPECT_EQ(meant("R:w ./x:main"), "r:w ./x:main");
  EXPECT_EQ(meant("p:my/w /opt/my own prog:work n=%di:u64"),
            "p:my/w /opt/my\\040own\\040prog:work n=%di:u64");
  EXPECT_EQ(MeantLine("p work", Dialect::kExtended, "/a b"), "p /a\\040b:work");
  EXPECT_EQ(meant("p:my/w 0x12 n=%di"), "p:my/w /bin/prog:0x12 n=%di");
  EXPECT_EQ(meant("p:my/w work n=%di:u64"), "p:my/w /bin/prog:work n=%di:u64");
  for (const char* line :
       {"", "p", "p /bin/x:main", "p 0xffffffff81000000", "-:g/e", "p mod:sym", "t:x sched_switch",
        "malloc", "t:x", "t:sched_switch", "f:x vfs_read", "f:vfs_read", "e:x sched.y", "s:x",
        "r:readline", "q:x", "sched:nosuch", "r:", "p:x n=%di:u64"})
    EXPECT_EQ(meant(line), "") << line;
}

TEST(MeantLine, IsSuggestedForTheLineThatWasRefused) {
  RemoteError error;
  error.verdicts.push_back(VerdictOn("p:a/b work", 6));
  SuggestMeantLine({"uprobe:x:y", "p:a/b  work"}, Dialect::kExtended, "/p", error);
  EXPECT_EQ(error.error.metadata["suggestions"], "p:a/b /p:work");
}

TEST(MeantLine, EventsOfTheKernel) {
  const auto meant = [](const std::string& line) {
    RemoteError error;
    error.error.reason = "NO_TARGET";
    error.verdicts.push_back(VerdictOn(line, 0));
    SuggestMeantLine({line}, Dialect::kExtended, "", error);
    return error.error.metadata["suggestions"];
  };
  EXPECT_EQ(meant("sched/sched_switch"), "sched:sched_switch");
  EXPECT_EQ(meant("sched_switch"), "*:sched_switch");
  EXPECT_EQ(meant("p:my/w ./x:main"), "");
}

TEST(MeantLine, OfTheProgramThatIsAboutToBeRun) {
  RemoteError error;
  error.error.reason = "FILE_NOT_FOUND";
  const std::string line = "p:a/b prog:work n=%di";
  error.verdicts.push_back(VerdictOn(line, 6));
  SuggestMeantLine({line}, Dialect::kExtended, "/opt/prog", error);
  EXPECT_EQ(error.error.metadata["suggestions"], "p:a/b /opt/prog:work n=%di");
}

TEST(MeantLine, FormsWhereNothingIsNear) {
  RemoteError error;
  error.error.reason = "UNKNOWN_KIND";
  error.verdicts.push_back(VerdictOn("work", 0));
  SuggestMeantLine({"work"}, Dialect::kExtended, "/bin/prog", error);
  EXPECT_NE(error.error.hint.find("PATH:SYMBOL"), std::string::npos);
}

TEST(MeantLine, OneOptionForEachEvent) {
  RemoteError error;
  const std::string line = "sched:sched_switch,sched:sched_wakeup";
  error.verdicts.push_back(VerdictOn(line, 0));
  SuggestMeantLine({line}, Dialect::kExtended, "", error);
  EXPECT_EQ(error.error.hint, "one -e for each: -e 'sched:sched_switch' -e 'sched:sched_wakeup'");
}

TEST(MeantLine, SourceLinesAreNotKnown) {
  for (const char* place : {"/bin/x:prog.c:42", "prog.cc:7"}) {
    RemoteError error;
    const std::string line = std::string("p:a/b ") + place;
    error.verdicts.push_back(VerdictOn(line, 6));
    SuggestMeantLine({line}, Dialect::kExtended, "/p", error);
    EXPECT_NE(error.error.hint.find("info line"), std::string::npos) << place;
  }
}

}  // namespace
}  // namespace probed::client
