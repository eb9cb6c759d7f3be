// The same lines put to the kernel's uprobe_events and to DefinitionSet: same errno, message, caret
// and listing. PROBED_LANG_SEED and PROBED_LANG_LINES choose others.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/file.h"
#include "engine/lang/definition_set.h"
#include "tests/lang/conformance_rows.h"
#include "tests/lang/kernel_uprobes.h"
#include "tests/lang/line_generator.h"
#include "tests/lang/real_files.h"

namespace probed::lang::testing {
namespace {

constexpr size_t kMaxLive = 24;  // definitions kept for later lines to meet
constexpr int kMaxDifferences = 20;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

std::string Describe(int error_number, const std::optional<std::string>& message,
                     std::optional<int> caret) {
  return fmt::format("errno {} message '{}' caret {}", error_number, message.value_or("-"),
                     caret.value_or(-1));
}

// What older kernels accept or refuse other than newer ones do: no char, but symbols on uprobes,
// nothing behind $retval, and more than 128 arguments, of which they pass over the rest.
bool SaysOtherwiseInOlderDialect(const std::string& line) {
  for (const char* word : {"char", "sym", "$retval", " a128="})
    if (line.find(word) != std::string::npos) return true;
  return false;
}

// Kernels up to 6.12 at least log nothing when there are too many arguments; newer ones do.
bool IsSilentAboutArguments(const KernelAnswer& theirs) {
  utsname system{};
  int major = 0, minor = 0;
  ::uname(&system);
  std::sscanf(system.release, "%d.%d", &major, &minor);
  const bool is_newer = major > 6 || (major == 6 && minor > 12);
  return !is_newer && theirs.error_number == E2BIG && !theirs.message;
}

// "(TYPE)MEMBER" is for BTF arguments: a kernel without them says so, one with them, whose README
// has their form, that user code has none.
bool IsAboutBtf(const KernelAnswer& theirs, const std::optional<std::string>& our_message) {
  if (our_message != "BTF is not available or not supported") return false;
  if (theirs.error_number != EINVAL) return false;
  const auto readme = ReadFile("/sys/kernel/tracing/README");
  return readme.ok() && readme->find("<argname>") != std::string::npos;
}

class KernelDifferential : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = KernelUprobes::Open();
    if (!opened.ok()) {
      GTEST_SKIP() << "no uprobe_events to compare with: " << opened.error().ToString();
    }
    kernel_.emplace(std::move(*opened));
    tag_ = fmt::format("lk{}", getpid());
    scratch_.emplace(tag_);
    set_.emplace(Dialect::kKernel, [this](const std::string& group, const std::string& event) {
      return kernel_->HasEvent(group, event);
    });
  }

  void TearDown() override {
    if (kernel_) DeleteAll();
  }

  // True when both said the same.
  bool Compare(const std::string& line) {
    const auto ours = set_->Apply(line, files_);
    const KernelAnswer theirs = kernel_->Put(line, ours.verdict.command);
    if (theirs.message) messages_.insert(*theirs.message);
    const bool same_caret = theirs.caret == ours.verdict.caret;
    const bool same_refusal = (theirs.error_number == ours.verdict.error_number &&
                               (IsSilentAboutArguments(theirs) ||
                                (theirs.message == ours.verdict.message && same_caret))) ||
                              (same_caret && IsAboutBtf(theirs, ours.verdict.message));
    const bool same_answer =
        kernel_->IsOlderDialect() ? (theirs.error_number == 0) == ours.verdict.ok : same_refusal;
    const bool changed = ours.added || !ours.removed.empty() || theirs.error_number == 0;
    const bool same_list = !changed || kernel_->List(tag_) == OurList();
    if (same_answer && same_list) return true;
    ADD_FAILURE() << Escape(line)
                  << "\n  kernel: " << Describe(theirs.error_number, theirs.message, theirs.caret)
                  << "\n  ours:   "
                  << Describe(ours.verdict.error_number, ours.verdict.message, ours.verdict.caret)
                  << (same_list ? "" : "\n  lists differ");
    if (!same_list) Resynchronise();
    return false;
  }

  std::vector<std::string> OurList() const {
    std::vector<std::string> listed;
    for (const DefinitionId id : set_->ids()) {
      const std::string& readback = set_->Find(id)->readback;
      if (readback.find(tag_) != std::string::npos) listed.push_back(readback);
    }
    return listed;
  }

  // Deletes what the lists hold, in the kernel and here, by read-back so that only ours can match.
  void DeleteAll() {
    for (const std::string& listed : kernel_->List(tag_)) {
      const size_t space = listed.find(' ');
      const std::string name = listed.substr(1, space - 1);
      const size_t place_end = listed.find(' ', space + 1);
      const std::string line = "-" + name + listed.substr(space, place_end - space);
      kernel_->Put(line, "");
    }
    for (const DefinitionId id : set_->ids())
      set_->Remove(id);
    EXPECT_EQ(kernel_->List(tag_), std::vector<std::string>{});
  }

  void Resynchronise() { DeleteAll(); }

  size_t Live() const { return set_->ids().size(); }

  RealNamespace files_;
  std::set<std::string> messages_;  // of the kernel, so far
  std::string tag_;
  std::optional<KernelUprobes> kernel_;
  std::optional<ScratchFiles> scratch_;
  std::optional<DefinitionSet> set_;
};

TEST_F(KernelDifferential, GeneratedLines) {
  const uint64_t seed = FromEnvironment("PROBED_LANG_SEED", 20260101);
  const uint64_t lines = FromEnvironment("PROBED_LANG_LINES", 5000);
  std::cout << fmt::format("PROBED_LANG_SEED={} PROBED_LANG_LINES={}\n", seed, lines);
  LineGenerator generator(seed, tag_, scratch_->paths());
  int differences = 0;
  uint64_t accepted = 0;
  uint64_t deleted = 0;
  for (uint64_t i = 0; i < lines && differences < kMaxDifferences; ++i) {
    const size_t before = Live();
    const std::string line = generator.Next();
    if (kernel_->IsOlderDialect() && SaysOtherwiseInOlderDialect(line)) continue;
    if (!Compare(line)) ++differences;
    if (Live() > before) {
      ++accepted;
      generator.Remember(set_->Find(set_->ids().back())->readback);
    }
    if (Live() < before) ++deleted;
    if (Live() > kMaxLive) DeleteAll();
  }
  std::cout << fmt::format("{} lines, {} accepted, {} deletions, {} different messages\n", lines,
                           accepted, deleted, messages_.size());
  EXPECT_GT(accepted, lines / 10) << "the generator makes too few good lines";
}

}  // namespace
}  // namespace probed::lang::testing
