#include "client/typed_places.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace probed::client {
namespace {

using lang::Dialect;

// A working directory of a test's own.
class TypedPlaces : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    char name[] = "/tmp/probed-places-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    here_ = std::filesystem::canonical(name);
    std::filesystem::current_path(here_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(here_);
  }
  std::string Line(const std::string& line) { return AbsoluteLine(line, Dialect::kExtended); }

  std::filesystem::path before_;
  std::string here_;
};

TEST_F(TypedPlaces, RelativePathsBeginWhereWeAre) {
  EXPECT_EQ(Line("p ./prog:work"), "p " + here_ + "/prog:work");
  EXPECT_EQ(Line("r:g/e  a/b:0x10 $retval # c"), "r:g/e  " + here_ + "/a/b:0x10 $retval # c");
  EXPECT_EQ(Line("p ../prog:work"), "p " + here_ + "/../prog:work");
  EXPECT_EQ(Line("p .//./prog:ns::f+4"), "p " + here_ + "/prog:ns::f+4");
  EXPECT_EQ(Line("p ./prog:main.(*T).Inc"), "p " + here_ + "/prog:main.(*T).Inc");
  EXPECT_EQ(Line("-:g/e ./prog:0x10"), "-:g/e " + here_ + "/prog:0x10");
  EXPECT_EQ(AbsoluteLine("p ./a::0x10", Dialect::kKernel), "p " + here_ + "/a::0x10");
}

TEST_F(TypedPlaces, BlanksOfTheDirectoryDoNotEndAWord) {
  std::filesystem::create_directory("a b");
  std::filesystem::current_path("a b");
  EXPECT_EQ(Line("p ./c\\040d:work %di"), "p " + here_ + "/a\\040b/c\\040d:work %di");
  EXPECT_EQ(AbsoluteFile("./c d", ""), here_ + "/a b/c d");
}

TEST_F(TypedPlaces, OthersStayAsTheyAre) {
  for (const char* line :
       {"p /bin/x:work", "p libc.so.6:malloc", "p do_sys_open", "sched:sched_switch", "-:g/e", "p",
        "", "t:x ./y:z", "p libc.so.6:a/b", "p:./x /bin/y:1", "p /x:1 +0(%di):string"})
    EXPECT_EQ(Line(line), line);
}

TEST_F(TypedPlaces, ABareNameIsAFileOnlyWhereNothingElseIsMeant) {
  EXPECT_EQ(AbsoluteFile("prog", ""), "prog");
  std::filesystem::create_directory("prog");
  EXPECT_EQ(AbsoluteFile("prog", ""), here_ + "/prog");
  EXPECT_EQ(AbsoluteFile("prog", "targets/1-2"), "prog");
  EXPECT_EQ(AbsoluteFile("./prog", "targets/1-2"), here_ + "/prog");
}

v1::LineVerdict VerdictOn(const std::string& command, int caret) {
  v1::LineVerdict verdict;
  verdict.set_command(command);
  verdict.set_caret(caret);
  return verdict;
}

TEST_F(TypedPlaces, ErrorsAreShownAsTyped) {
  const std::vector<std::string> lines = {"p:g/a /bin/x:1", "p:g/b   ./prog:nope  n=%zz"};
  const std::string sent = "p:g/b " + here_ + "/prog:nope n=%zz";
  const int place = 6, symbol = static_cast<int>(sent.find("nope"));
  const int argument = static_cast<int>(sent.find("%zz"));
  RemoteError error;
  for (const int caret : {place, symbol, argument})
    error.verdicts.push_back(VerdictOn(sent, caret));
  error.verdicts.push_back(VerdictOn("p:g/a /bin/x:1", 13));
  ShowAsTyped(lines, Dialect::kExtended, error);
  const std::string typed = "p:g/b ./prog:nope n=%zz";
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(error.verdicts[static_cast<size_t>(i)].command(), typed);
  EXPECT_EQ(error.verdicts[0].caret(), 6);
  EXPECT_EQ(typed.substr(static_cast<size_t>(error.verdicts[1].caret()), 4), "nope");
  EXPECT_EQ(typed.substr(static_cast<size_t>(error.verdicts[2].caret())), "%zz");
  EXPECT_EQ(error.verdicts[3].command(), "p:g/a /bin/x:1");
  EXPECT_EQ(error.verdicts[3].caret(), 13);
}

}  // namespace
}  // namespace probed::client
