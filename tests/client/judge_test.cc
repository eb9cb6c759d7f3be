#include "client/judge.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "client/local_files.h"

namespace probed::client {
namespace {

TEST(AppendVerdict, AcceptedLine) {
  lang::Verdict verdict;
  verdict.ok = true;
  verdict.command = "p:g/a /x:0x1";
  verdict.readback = {"p:g/a /x:0x0000000000000001"};
  std::string out;
  AppendVerdict(3, verdict, out);
  EXPECT_EQ(out, R"({"line":3,"ok":true,"errno":0,"errno_name":null,"message":null,"caret":null,)"
                 R"("command":"p:g/a /x:0x1","reason":"","explanation":"",)"
                 R"("readback":["p:g/a /x:0x0000000000000001"]})"
                 "\n");
}

TEST(AppendVerdict, RefusedLine) {
  lang::Verdict verdict;
  verdict.error_number = EINVAL;
  verdict.code = "BAD_REG_NAME";
  verdict.message = "Invalid register name";
  verdict.caret = 7;
  verdict.command = "p x:1 %zz";
  verdict.explanation = "why";
  std::string out;
  AppendVerdict(1, verdict, out);
  EXPECT_EQ(out, R"({"line":1,"ok":false,"errno":22,"errno_name":"EINVAL",)"
                 R"("message":"Invalid register name","caret":7,"command":"p x:1 %zz",)"
                 R"("reason":"BAD_REG_NAME","explanation":"why","readback":[]})"
                 "\n");
}

TEST(Judge, ALineThatIsTooLongIsRefusedAndTheRestGoesOn) {
  LocalFiles files;
  std::string out;
  std::string input = "p:g/a /bin/sh:0x10" + std::string(5000, ' ') + "\np:g/b /bin/sh:0x10\n";
  EXPECT_FALSE(Judge(lang::Dialect::kKernel).JudgeAll(input, files, out));
  EXPECT_NE(out.find(R"("ok":false,"errno":22,"errno_name":"EINVAL","message":null)"),
            std::string::npos);
  EXPECT_NE(out.find("p:g/b /bin/sh:0x0000000000000010"), std::string::npos);
}

TEST(Judge, ForeignEventsAreInTheWay) {
  LocalFiles files;
  std::string out;
  Judge judge(lang::Dialect::kKernel, [](const std::string& group, const std::string& event) {
    return group == "g" && event == "taken";
  });
  EXPECT_FALSE(judge.JudgeAll("p:g/taken /bin/sh:0x10\n", files, out));
  EXPECT_NE(out.find("EEXIST"), std::string::npos);
}

TEST(LocalFiles, LookupTellsFilesFromDirectories) {
  LocalFiles files;
  EXPECT_TRUE(files.Lookup("/proc/self/exe").regular);
  EXPECT_FALSE(files.Lookup("/").regular);
  EXPECT_EQ(files.Lookup("/").error_number, 0);
  EXPECT_EQ(files.Lookup("/nonexistent").error_number, ENOENT);
  EXPECT_EQ(files.Lookup("/proc/self/exe/x").error_number, ENOTDIR);
}

}  // namespace
}  // namespace probed::client
