// Every row of definitions.tsv: one write to uprobe_events as a real kernel judged it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <regex>

#include "engine/lang/definition_set.h"
#include "tests/lang/conformance_rows.h"
#include "tests/lang/fake_files.h"

namespace probed::lang::testing {
namespace {

// As long as the names of the recorded run, so that the recorded caret columns hold.
constexpr const char* kDirectory = "/tmp/kgr/conformance";
constexpr const char* kLongName =
    "kgrlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong";
constexpr uint64_t kOffset = 0x1149, kOffset2 = 0x115a;

enum Column {
  kId,
  kTopic,
  kSetup,
  kLine,
  kVerdict,
  kErrno,
  kMessage,
  kCaret,
  kMarked,
  kReadback,
  kNote
};

std::string Substitute(std::string text) {
  const std::pair<std::string, std::string> kNames[] = {
      {"{BIN}", fmt::format("{}/kgrbin", kDirectory)},
      {"{DIR}", kDirectory},
      {"{OFF16}", fmt::format("0x{:016x}", kOffset)},
      {"{OFF2_16}", fmt::format("0x{:016x}", kOffset2)},
      {"{OFF}", fmt::format("0x{:x}", kOffset)},
      {"{OFF2}", fmt::format("0x{:x}", kOffset2)},
  };
  text = Unescape(text);
  for (const auto& [name, value] : kNames) {
    for (size_t at; (at = text.find(name)) != std::string::npos;) {
      text.replace(at, name.size(), value);
    }
  }
  return text;
}

// {PADn}: spaces that bring the line up to n bytes.
std::string Pad(std::string text) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(R"(\{PAD(\d+)\})"))) return text;
  const size_t wanted = std::stoul(match[1]);
  const size_t rest = text.size() - match.length();
  return match.prefix().str() + std::string(wanted - rest, ' ') + match.suffix().str();
}

std::string WriteOf(const Row& row) {
  std::string text = Pad(Substitute(row[kLine]));
  const bool is_open = row[kNote].find("no newline") != std::string::npos;
  if (!is_open && !text.ends_with('\n')) text += '\n';
  return text;
}

FakeFiles RecordedFiles() {
  FakeFiles files;
  const std::string directory = kDirectory;
  uint64_t inode = 1;
  for (const char* name :
       {"kgrbin", "kgrbin2", "kgr.so.6", "kgr+x", "kgr:colon", "kgr(1)", "9kgr", kLongName}) {
    files.AddFile(directory + "/" + name, inode++);
  }
  files.AddFile(directory + "/kgrlink", 1);
  files.AddFile("kgrbin", 1);
  files.AddFile("/proc/self/exe", 99);
  files.AddDirectory(directory);
  return files;
}

int ErrnoOf(const std::string& name) {
  static const std::map<std::string, int> kNames = {{"", 0},
                                                    {"EINVAL", EINVAL},
                                                    {"ENOENT", ENOENT},
                                                    {"E2BIG", E2BIG},
                                                    {"ERANGE", ERANGE},
                                                    {"EEXIST", EEXIST},
                                                    {"ENOTSUP", EOPNOTSUPP}};
  return kNames.at(name);
}

// Lines run in order; the first failure stops the write.
Verdict Write(DefinitionSet& set, FakeFiles& files, const std::string& bytes) {
  Verdict verdict;
  verdict.ok = true;
  for (const InputLine& line : SplitLines(bytes)) {
    verdict = set.Apply(line.text, files).verdict;
    EXPECT_TRUE(!line.too_long || !verdict.ok);
    if (!verdict.ok) break;
  }
  return verdict;
}

std::string Listing(const DefinitionSet& set, size_t skip) {
  std::string listing;
  const auto ids = set.ids();
  for (size_t i = skip; i < ids.size(); ++i) {
    if (!listing.empty()) listing += '\n';
    listing += set.Find(ids[i])->readback;
  }
  return listing;
}

class DefinitionsConformance : public ::testing::TestWithParam<Row> {};

TEST_P(DefinitionsConformance, AnswersAsTheKernel) {
  const Row& row = GetParam();
  FakeFiles files = RecordedFiles();
  DefinitionSet set(Dialect::kKernel, [](const std::string& group, const std::string& event) {
    return group == "sched" && event == "sched_switch";
  });
  if (!row[kSetup].empty()) {
    ASSERT_TRUE(Write(set, files, Substitute(row[kSetup])).ok);
  }
  const size_t skip = row[kTopic] == "delete" ? 0 : set.ids().size();

  const Verdict verdict = Write(set, files, WriteOf(row));

  EXPECT_EQ(verdict.ok, row[kVerdict] == "accept");
  EXPECT_EQ(verdict.error_number, ErrnoOf(row[kErrno]));
  EXPECT_EQ(verdict.message.value_or(""), row[kMessage]);
  EXPECT_EQ(verdict.explanation.empty(), verdict.ok);
  EXPECT_EQ(verdict.code.empty(), verdict.ok);
  if (row[kMessage].empty()) {
    EXPECT_FALSE(verdict.caret.has_value());
  } else {
    ASSERT_TRUE(verdict.caret.has_value());
    EXPECT_EQ(*verdict.caret, std::stoi(row[kCaret]));
    std::string marked = verdict.command;
    // One past the end is shown as the end.
    marked.insert(std::min<size_t>(*verdict.caret, marked.size()), "^");
    EXPECT_EQ(marked, Substitute(row[kMarked]));
  }
  const std::string expected = row[kReadback] == "-" ? "" : Substitute(row[kReadback]);
  EXPECT_EQ(Listing(set, skip), expected);
}

std::string RowName(const ::testing::TestParamInfo<Row>& info) {
  return fmt::format("{}_{}", info.param[kTopic], info.param[kId]);
}

INSTANTIATE_TEST_SUITE_P(Row, DefinitionsConformance,
                         ::testing::ValuesIn(ReadRows("definitions.tsv", kNote + 1)), RowName);

TEST(DefinitionsConformanceData, IsComplete) {
  EXPECT_EQ(ReadRows("definitions.tsv", kNote + 1).size(), 416u);
}

}  // namespace
}  // namespace probed::lang::testing
