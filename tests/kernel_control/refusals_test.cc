// What the kernel says of a line, through Control, is what it says when the line is written to it
// as it stands. Needs a kernel with kprobes: tests/kernel boots one.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "engine/event/hub.h"
#include "engine/kernel/control.h"
#include "engine/kernel/error_log.h"
#include "engine/lang/line.h"
#include "tests/kernel_control/own_tracefs.h"
#include "tests/kernel_control/refusal_corpus.h"

namespace probed::kernel {
namespace {

using testing::RefusedLine;

constexpr pid_t kNobody = 5'000'002;

struct Answer {
  int error_number = 0;
  std::optional<LoggedError> logged;
};

bool Contains(std::string_view list, std::string_view code) {
  while (!list.empty()) {
    const size_t end = std::min(list.find('|'), list.size());
    if (list.substr(0, end) == code) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// A name that kallsyms has more than once, of functions that may be probed otherwise.
std::string AmbiguousFunction() {
  std::ifstream kallsyms("/proc/kallsyms");
  std::map<std::string, int> counts;
  std::string address, type, name, rest;
  while (kallsyms >> address >> type >> name && std::getline(kallsyms, rest))
    if (rest.empty() && (type == "t" || type == "T")) ++counts[name];
  const auto twice = [](const auto& entry) {
    return entry.second > 1 && entry.first.find_first_of(".:") == std::string::npos;
  };
  const auto found = std::find_if(counts.begin(), counts.end(), twice);
  return found == counts.end() ? "" : found->first;
}

std::set<std::string> CodesOfTheKernel() {
  std::ifstream file("/sys/kernel/btf/vmlinux", std::ios::binary);
  std::set<std::string> codes;
  constexpr std::string_view kBegin = "TP_ERR_";
  for (std::string word; std::getline(file, word, '\0');)
    if (word.starts_with(kBegin)) codes.insert(word.substr(kBegin.size()));
  return codes;
}

class RefusalsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tracefs_ = testing::RealTracefs();
    if (!tracefs_ || !tracefs_->Has("kprobe_events")) GTEST_SKIP() << "this kernel has no kprobes";
    owner_.start_ticks = static_cast<uint64_t>(getpid());
    control_.emplace(owner_, drainer_);
    // Keeps the instance, which takes an emulated machine most of the time to make.
    const auto kept = control_->Create({{.line = 0, .text = "sched:sched_switch"}},
                                       {.enable = false}, [] { return event::ProbeId{2}; });
    ASSERT_FALSE(kept.refusal);
  }

  void TearDown() override {
    control_.reset();
    if (!tracefs_) return;
    EXPECT_TRUE(testing::DefinitionsWith(*tracefs_, GroupPrefix(owner_)).empty());
    EXPECT_TRUE(testing::InstancesWith(*tracefs_, InstanceName(owner_)).empty());
  }

  // The lines are such that no kernel takes them.
  Answer AskTheKernel(const std::string& line) {
    const Status written = tracefs_->Write("dynamic_events", line + "\n");
    EXPECT_FALSE(written.ok()) << line;
    const auto log = tracefs_->Read("error_log");
    return {.error_number = written.ok() ? 0 : ErrnoOf(written.error()),
            .logged = FindError(log.ok() ? *log : "", lang::JoinTokens(lang::Tokenize(line)))};
  }

  std::optional<Refusal> AskControl(const std::string& line) {
    return control_->Create({{.line = 0, .text = line}}, {}, [] { return event::ProbeId{1}; })
        .refusal;
  }

  void Compare(const RefusedLine& row) {
    const std::string line(row.line);
    CompareTo(AskTheKernel(line), row);
  }

  void CompareTo(const Answer& kernel, const RefusedLine& row) {
    SCOPED_TRACE(row.line);
    const std::string line(row.line);
    const auto refusal = AskControl(line);
    ASSERT_TRUE(refusal);
    ASSERT_TRUE(kernel.logged) << "the kernel logs nothing";
    seen_.insert(refusal->verdict.code);
    EXPECT_EQ(refusal->verdict.message, kernel.logged->message);
    EXPECT_EQ(refusal->verdict.caret, kernel.logged->caret);
    EXPECT_EQ(refusal->verdict.command, kernel.logged->command);
    EXPECT_EQ(refusal->verdict.error_number, kernel.error_number);
    EXPECT_TRUE(Contains(row.codes, refusal->verdict.code)) << refusal->verdict.code;
    EXPECT_EQ(refusal->error.reason, refusal->verdict.code);
  }

  template <class Rows>
  void CompareAll(const Rows& rows) {
    for (const RefusedLine& row : rows)
      Compare(row);
    EXPECT_TRUE(testing::DefinitionsWith(*tracefs_, GroupPrefix(owner_)).empty());
  }

  bool IsNewer() {
    const Features features = ReadFeatures(*tracefs_);
    return features.Has(LineKind::kFprobe) && features.btf_arguments;
  }

  std::set<std::string> seen_;  // codes
  std::optional<Tracefs> tracefs_;
  Owner owner_{.pid = kNobody};
  event::Hub hub_;
  event::Drainer drainer_{hub_};
  std::optional<Control> control_;
};

TEST_F(RefusalsTest, OfKprobes) {
  CompareAll(testing::kRefusedKprobes);
}

TEST_F(RefusalsTest, OfEventProbes) {
  if (!ReadFeatures(*tracefs_).Has(LineKind::kEprobe)) GTEST_SKIP() << "no event probes";
  CompareAll(testing::kRefusedEventProbes);
}

TEST_F(RefusalsTest, OfUprobes) {
  CompareAll(testing::kRefusedUprobes);
}

TEST_F(RefusalsTest, OfFunctionAndTracepointProbesAndTypes) {
  if (!IsNewer()) GTEST_SKIP() << "no function probes, or no BTF arguments";
  CompareAll(testing::kRefusedByNewer);
}

TEST_F(RefusalsTest, OfLinesThatTheKernelWritesOut) {
  if (!IsNewer()) GTEST_SKIP() << "no function probes, or no BTF arguments";
  for (const RefusedLine& row : testing::kRefusedWhenWrittenOut) {
    Answer kernel = AskTheKernel(std::string(row.line));
    const auto log = tracefs_->Read("error_log");
    const std::string words = std::string(row.line.substr(0, row.line.find(' ', 6)));
    if (!kernel.logged) kernel.logged = FindErrorOf(*log, words);
    CompareTo(kernel, row);
  }
}

// The kernel's type information has the names of all that it can say of a line.
TEST_F(RefusalsTest, OfEverySortThatTheKernelHas) {
  if (!IsNewer()) GTEST_SKIP() << "no function probes, or no BTF arguments";
  CompareAll(testing::kRefusedKprobes);
  CompareAll(testing::kRefusedUprobes);
  CompareAll(testing::kRefusedEventProbes);
  CompareAll(testing::kRefusedByNewer);
  const std::string twice = "p:g/e " + AmbiguousFunction();
  Compare({"NON_UNIQ_SYMBOL", twice});
  for (const auto& [code, why] : testing::kUnseenCodes)
    seen_.insert(std::string(code));
  const std::set<std::string> all = CodesOfTheKernel();
  EXPECT_GT(all.size(), 70u);
  for (const std::string& code : all)
    EXPECT_TRUE(seen_.contains(code)) << code;
}

TEST_F(RefusalsTest, OfSyntheticEvents) {
  if (!ReadFeatures(*tracefs_).Has(LineKind::kSynthetic)) GTEST_SKIP() << "no synthetic events";
  CompareAll(testing::kRefusedSynthetic);
}

TEST_F(RefusalsTest, OfASymbolThatIsThereTwice) {
  const std::string name = AmbiguousFunction();
  ASSERT_NE(name, "");
  const std::string line = "p:g/e " + name;
  Compare({"NON_UNIQ_SYMBOL", line});
}

// The filter of an event probe is logged as a command of its own.
TEST_F(RefusalsTest, OfTheFilterInAnEventProbe) {
  if (!ReadFeatures(*tracefs_).Has(LineKind::kEprobe)) GTEST_SKIP() << "no event probes";
  const std::string line = "e:g/e sched.sched_switch  a=$prev_pid if no_field == 1";
  const auto refusal = AskControl(line);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->verdict.message, "Field not found");
  EXPECT_EQ(refusal->verdict.code, "FIELD_NOT_FOUND");
  EXPECT_EQ(refusal->verdict.command, lang::JoinTokens(lang::Tokenize(line)));
  EXPECT_EQ(refusal->verdict.error_number, EINVAL);
  const Answer kernel = AskTheKernel(line);
  const auto log = tracefs_->Read("error_log");
  const auto logged = FindError(*log, "no_field == 1");
  ASSERT_TRUE(logged && refusal->verdict.caret);
  EXPECT_EQ(*refusal->verdict.caret,
            logged->caret + static_cast<int>(refusal->verdict.command.find("no_field")));
}

}  // namespace
}  // namespace probed::kernel
