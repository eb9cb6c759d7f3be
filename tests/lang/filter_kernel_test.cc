// The same filters put to the kernel's `filter` file and to CompileFilter: same errno, message,
// column and read-back; and of the same hits the same ones pass. PROBED_LANG_SEED,
// PROBED_LANG_FILTERS and PROBED_LANG_HIT_FILTERS choose others.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <optional>
#include <set>

#include "base/file.h"
#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/filter.h"
#include "tests/lang/conformance_rows.h"
#include "tests/lang/filter_generator.h"
#include "tests/lang/kernel_uprobes.h"
#include "tests/lang/own_location.h"
#include "tests/lang/probed_functions.h"
#include "tests/lang/real_files.h"
#include "tests/lang/self_context.h"
#include "tests/lang/trace_instance.h"

namespace probed::lang::testing {
namespace {

constexpr int kMaxDifferences = 20;
constexpr const char* kComm = "filtered thing";

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

#pragma pack(push, 1)
// What the probed function is given; `text` and the rest point into this program.
struct Thing {
  uint8_t u8;
  int8_t s8;
  uint16_t u16;
  int16_t s16;
  uint32_t u32;
  int32_t s32;
  uint64_t u64;
  int64_t s64;
  char letters[8];
  uint16_t small;
  const char* text;
  const char* texts[2];
  const char* unreadable;
};
#pragma pack(pop)

constexpr const char* kArguments =
    " n=%di:u64 u8=+0(%si):u8 s8=+1(%si):s8 u16=+2(%si):u16 s16=+4(%si):s16 u32=+6(%si):u32"
    " s32=+10(%si):s32 u64=+14(%si):u64 s64=+22(%si):s64 x=+22(%si) c=+30(%si):char"
    " c2=+30(%si):char[2] c3=+30(%si):char[3] c8=+30(%si):char[8] s4=+4(%si):s16[2]"
    " bits=+0(%si):b3@2/8 small=+38(%si):u16 text=+0(+40(%si)):string"
    " texts=+48(%si):string[2] name=$comm bad=+0(+64(%si)):string";
static_assert(offsetof(Thing, small) == 38 && offsetof(Thing, unreadable) == 64);

const Thing kThings[] = {
    {0, 0, 0, 0, 0, 0, 0, 0, "", 0, "", {"one", "two"}, nullptr},
    {1, 1, 1, 1, 1, 1, 1, 1, "a", 1, "world", {"", "two"}, nullptr},
    {2, -1, 256, -1, 65536, -1, 1ull << 32, -1, "ab", 2, "w*d", {"two", "one"}, nullptr},
    {127,
     127,
     32767,
     32767,
     0x7fffffff,
     0x7fffffff,
     0x7fffffffffffffff,
     0x7fffffffffffffff,
     "Q",
     3,
     "hello world",
     {"one", "one"},
     nullptr},
    {128,
     -128,
     32768,
     -32768,
     0x80000000,
     -0x7fffffff - 1,
     0x8000000000000000,
     -0x7fffffffffffffff - 1,
     "abcdefg",
     5,
     "2 mice",
     {"w", "orld"},
     nullptr},
    {255,
     -2,
     65535,
     -2,
     0xffffffff,
     -2,
     0xffffffffffffffff,
     -2,
     "zz",
     7,
     "a'b\"c[d]",
     {"x", ""},
     nullptr},
};

std::vector<FilterSubject> Subjects() {
  const std::vector<std::string> numbers = {"0",
                                            "1",
                                            "2",
                                            "5",
                                            "-1",
                                            "-2",
                                            "127",
                                            "128",
                                            "-128",
                                            "255",
                                            "256",
                                            "510",
                                            "32767",
                                            "-32768",
                                            "65535",
                                            "0x7f",
                                            "077",
                                            "65536",
                                            "0xff",
                                            "24930",
                                            "25185",
                                            "2147483647",
                                            "-2147483648",
                                            "4294967295",
                                            "4294967298",
                                            "9223372036854775807",
                                            "-9223372036854775808",
                                            "97"};
  std::vector<std::string> unsigned_numbers;
  for (const std::string& number : numbers) {
    if (number[0] != '-') unsigned_numbers.push_back(number);
  }
  unsigned_numbers.insert(unsigned_numbers.end(), {"18446744073709551615", "9223372036854775808"});
  const std::vector<std::string> texts = {
      "",    "world", "w*d", "hello world", "2 mice", "one",  "two",      "w",
      "wor", kComm,   "a",   "(fault)",     "*",      "orld", "filtered", "thing"};
  std::vector<FilterSubject> subjects;
  for (const char* name : {"s8", "s16", "s32", "s64", "s4"}) {
    subjects.push_back({name, numbers});
  }
  for (const char* name : {"n", "u8", "u16", "u32", "u64", "x", "c", "c2", "c3", "c8", "bits"}) {
    subjects.push_back({name, unsigned_numbers});
  }
  for (const char* name : {"text", "texts", "name", "COMM", "comm"}) {
    subjects.push_back({name, texts, true});
  }
  subjects.push_back({"small", {"0", "1", "2", "3"}});
  for (const char* name : {"CPU", "cpu", "common_cpu"}) {
    subjects.push_back({name, {"0", "1", "-1", "4294967296", "4294967297"}});
  }
  subjects.push_back({"common_pid", {std::to_string(gettid()), "0", "-1", "1"}});
  subjects.push_back({"__probe_ip",
                      {fmt::format("{:#x}", reinterpret_cast<uint64_t>(&FilteredByTest)), "0",
                       std::to_string(reinterpret_cast<uint64_t>(&FilteredByTest) + 1)}});
  return subjects;
}

// Compared with a string that could not be read, the kernel looks at what an earlier record left at
// its place: fit for its parser only.
std::vector<FilterSubject> SubjectsForParser() {
  std::vector<FilterSubject> subjects = Subjects();
  subjects.push_back({"bad", {"", "(fault)"}, true});
  return subjects;
}

bool NeedsNewerDialect(const std::string& filter) {
  for (const char* part : {"CPUS", ".func", "stacktrace", "STACKTRACE"})
    if (filter.find(part) != std::string::npos) return true;
  return false;
}

// An event of this program with the fields above, in an instance of its own.
class KernelFilter : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = KernelUprobes::Open();
    if (!opened.ok()) {
      GTEST_SKIP() << "no uprobe_events to compare with: " << opened.error().ToString();
    }
    kernel_.emplace(std::move(*opened));
    group_ = fmt::format("lf{}", getpid());
    auto instance = TraceInstance::Create(group_);
    ASSERT_TRUE(instance.ok()) << instance.error().ToString();
    instance_.emplace(std::move(*instance));
    function_ = reinterpret_cast<uint64_t>(&FilteredByTest);
    location_ = LocationOf(function_);
    const std::string line = fmt::format("p:{}/e {}:{}{}", group_, location_.path, location_.offset,
                                         kernel_->InItsDialect(kArguments));
    const auto applied = set_.Apply(line, files_);
    ASSERT_TRUE(applied.added) << applied.verdict.explanation;
    definition_ = set_.Find(*applied.added);
    ASSERT_EQ(kernel_->Put(line, applied.verdict.command).error_number, 0);
    rules_ = {Dialect::kKernel, static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF))};
  }

  void TearDown() override {
    if (!instance_) return;
    static_cast<void>(instance_->Disable(group_, "e"));
    kernel_->Put("-:" + group_ + "/", "");
  }

  // A filter of `generate` that older kernels have all fields and operators for.
  std::string Next(const std::function<std::string()>& generate) const {
    std::string filter = generate();
    while (kernel_->IsOlderDialect() && NeedsNewerDialect(filter))
      filter = generate();
    return filter;
  }

  std::string ReadBack() const { return instance_->ReadEventFile(group_, "e", "filter"); }

  // Same errno, text of the file, and newest entry of the log.
  std::string Theirs(const std::string& filter) {
    instance_->ClearErrorLog();
    const int error = instance_->WriteEventFile(group_, "e", "filter", filter);
    std::string answer = fmt::format("errno {} file {}", error, Escape(ReadBack()));
    if (error != 0) answer += " log " + Escape(instance_->ErrorLog());
    return answer;
  }

  std::string Ours(const std::string& filter) {
    const auto compiled = CompileFilter(filter, definition_->schema, rules_);
    if (compiled) return fmt::format("errno 0 file {}", Escape(FilterFile(*compiled)));
    const FilterRefusal& refusal = compiled.error();
    messages_.insert(MessageOf(refusal.error));
    const std::string log =
        fmt::format("event filter parse error: error: {}\n  Command: {}\n{:>{}}\n",
                    MessageOf(refusal.error), refusal.text, '^', 12 + refusal.position);
    return fmt::format("errno {} file {} log {}", refusal.error_number, Escape(FilterFile(refusal)),
                       Escape(log));
  }

  std::string HitsOfKernel();
  std::string HitsOfOurs(const FilterCode& code, uint16_t event_id, uint32_t cpu);

  RealNamespace files_;
  DefinitionSet set_{Dialect::kKernel};
  std::shared_ptr<const Definition> definition_;
  std::string group_;
  std::optional<KernelUprobes> kernel_;
  std::optional<TraceInstance> instance_;
  uint64_t function_ = 0;
  OwnLocation location_;
  FilterRules rules_;
  std::set<std::string_view> messages_;
};

TEST_F(KernelFilter, IsJudgedTheSame) {
  const uint64_t seed = FromEnvironment("PROBED_LANG_SEED", 20261129);
  const uint64_t filters = FromEnvironment("PROBED_LANG_FILTERS", 3000);
  std::cout << fmt::format("PROBED_LANG_SEED={} PROBED_LANG_FILTERS={}\n", seed, filters);
  FilterGenerator generator(seed, SubjectsForParser());
  int differences = 0;
  uint64_t accepted = 0;
  for (uint64_t i = 0; i < filters && differences < kMaxDifferences; ++i) {
    const std::string filter = Next([&] { return generator.Next(); });
    const std::string ours = Ours(filter);
    const std::string theirs = Theirs(filter);
    accepted += ours.starts_with("errno 0");
    // Newer kernels pass over an operator with nothing behind it.
    if (ours == theirs || theirs.find("Meaningless filter") != std::string::npos) continue;
    ++differences;
    ADD_FAILURE() << "filter " << Escape(filter) << "\n  ours   " << ours << "\n  kernel "
                  << theirs;
  }
  EXPECT_GT(accepted, filters / 5);
  EXPECT_LT(accepted, filters * 4 / 5);
  // Of the kernel's messages a filter can meet, all but "No function" of a real function's name.
  if (filters >= 3000 && !kernel_->IsOlderDialect()) {
    EXPECT_GE(messages_.size(), 17u);
  }
}

TEST_F(KernelFilter, TakesTheSameLength) {
  for (const size_t size : {4094u, 4095u, 4096u, 5000u}) {
    ASSERT_EQ(instance_->WriteEventFile(group_, "e", "filter", "n==1"), 0);
    std::string filter = "n>=0 ";
    filter.resize(size, ' ');
    const auto ours = CompileFilter(filter, definition_->schema, rules_);
    EXPECT_EQ(instance_->WriteEventFile(group_, "e", "filter", filter),
              ours ? 0 : ours.error().error_number)
        << size;
    EXPECT_EQ(ReadBack(), ours ? FilterFile(*ours) : "n==1\n");
  }
}

std::string KernelFilter::HitsOfKernel() {
  for (size_t i = 0; i < std::size(kThings); ++i)
    FilteredByTest(i, &kThings[i]);
  const std::string trace = instance_->TakeTrace();
  std::string hits;
  for (size_t at = trace.find(" n="); at != std::string::npos; at = trace.find(" n=", at + 1))
    hits += fmt::format(" {}", std::atoi(trace.c_str() + at + 3));
  return hits;
}

std::string KernelFilter::HitsOfOurs(const FilterCode& code, uint16_t event_id, uint32_t cpu) {
  std::string hits;
  FetchLimits limits;
  limits.kernel_string_rules = true;
  for (size_t i = 0; i < std::size(kThings); ++i) {
    SelfContext context;
    context.regs[Reg::kDi] = i;
    context.regs[Reg::kSi] = reinterpret_cast<uint64_t>(&kThings[i]);
    context.regs[Reg::kIp] = function_;
    context.task_comm = kComm;
    std::vector<std::byte> payload;
    EXPECT_EQ(Fetch(*definition_->program, limits, context, payload), FetchOutcome::kRecorded);
    const FilterHit hit{payload, kComm, function_, function_, gettid(), cpu, event_id};
    if (Passes(code, hit)) hits += fmt::format(" {}", i);
  }
  return hits;
}

// On one CPU, so that both know which.
class Pinned {
 public:
  Pinned() {
    sched_getaffinity(0, sizeof(before_), &before_);
    for (cpu_ = 0; !CPU_ISSET(cpu_, &before_); ++cpu_) {
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu_, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
  ~Pinned() { sched_setaffinity(0, sizeof(before_), &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  uint32_t cpu() const { return cpu_; }

 private:
  cpu_set_t before_;
  uint32_t cpu_ = 0;
};

TEST_F(KernelFilter, LetsTheSameHitsPass) {
  const uint64_t seed = FromEnvironment("PROBED_LANG_SEED", 20261129);
  const uint64_t filters = FromEnvironment("PROBED_LANG_HIT_FILTERS", 400);
  std::cout << fmt::format("PROBED_LANG_SEED={} PROBED_LANG_HIT_FILTERS={}\n", seed, filters);
  prctl(PR_SET_NAME, kComm, 0, 0, 0);
  const Pinned pinned;
  const std::string format = instance_->Format(group_, "e");
  const auto id = static_cast<uint16_t>(std::atoi(format.c_str() + format.find("\nID: ") + 5));
  const Status enabled = instance_->Enable(group_, "e");
  ASSERT_TRUE(enabled.ok()) << enabled.error().ToString();
  FilterGenerator generator(seed, Subjects());
  int differences = 0;
  std::set<std::string> outcomes;
  for (uint64_t i = 0; i < filters && differences < kMaxDifferences; ++i) {
    const std::string filter = Next([&] { return generator.NextGood(); });
    const auto compiled = CompileFilter(filter, definition_->schema, rules_);
    if (!compiled && compiled.error().error == FilterError::kInvalidCpulist) continue;  // one CPU
    ASSERT_TRUE(compiled) << filter;
    ASSERT_EQ(instance_->WriteEventFile(group_, "e", "filter", filter), 0) << filter;
    const std::string ours = HitsOfOurs(compiled->code, id, pinned.cpu());
    const std::string theirs = HitsOfKernel();
    outcomes.insert(ours);
    if (ours == theirs) continue;
    ++differences;
    ADD_FAILURE() << "filter " << Escape(filter) << "\n  ours   " << ours << "\n  kernel "
                  << theirs;
  }
  if (filters >= 400) {
    EXPECT_GT(outcomes.size(), 20u);
  }
}

}  // namespace
}  // namespace probed::lang::testing
