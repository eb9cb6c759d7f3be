// This process probes itself through the kernel and fetches the same arguments itself: same lines,
// same format file, same profile.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>

#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/payload.h"
#include "engine/lang/print.h"
#include "tests/lang/conformance_rows.h"
#include "tests/lang/kernel_uprobes.h"
#include "tests/lang/own_location.h"
#include "tests/lang/probed_functions.h"
#include "tests/lang/real_files.h"
#include "tests/lang/self_context.h"
#include "tests/lang/trace_instance.h"

namespace probed::lang::testing {
namespace {

constexpr size_t kPage = 4096;

// Three pages, the middle one unreadable, full of bytes, strings and pointers into itself.
class Arena {
 public:
  explicit Arena(std::mt19937_64& random) {
    base_ = static_cast<char*>(
        mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    Fill(0, random);
    Fill(2 * kPage, random);
    mprotect(base_ + kPage, kPage, PROT_NONE);
  }
  ~Arena() { munmap(base_, 3 * kPage); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Anywhere, the hole and its edges included.
  uint64_t Address(std::mt19937_64& random) const {
    const uint64_t base = reinterpret_cast<uint64_t>(base_);
    switch (random() % 8) {
      case 0:
        return base + kPage - 1 - random() % 16;
      case 1:
        return base + kPage + random() % kPage;
      case 2:
        return base + 2 * kPage + random() % 64;
      default:
        return base + (random() % (kPage - 200)) / 8 * 8 + 2 * kPage * (random() % 2);
    }
  }

 private:
  void Fill(size_t start, std::mt19937_64& random) {
    for (size_t at = start; at < start + kPage; at += 8) {
      uint64_t word = random();
      if (random() % 3 == 0) word = Address(random);
      if (random() % 8 == 0) word &= 0xffffff;  // the end of a string
      std::memcpy(base_ + at, &word, sizeof(word));
    }
  }

  char* base_;
};

// One call of ProbedByTest: what the registers hold.
struct Call {
  uint64_t arguments[6];
};

class ArgumentGenerator {
 public:
  ArgumentGenerator(std::mt19937_64& random, const Arena& arena, ProbeKind kind)
      : random_(random), arena_(arena), kind_(kind) {}

  // "+8(+0(%si)):string", or nothing when an inner load fails: there the kernel shows leftovers.
  std::optional<std::string> Next(SelfContext& context) {
    if (random_() % 16 == 0) return "$comm";
    auto [text, value] = Source(context);
    // Code is not compared: at the hit it holds the breakpoint.
    const size_t loads = text == "%ip" ? 0 : random_() % 4;
    for (size_t i = 0; i < loads; ++i) {
      if (i > 0 && !Load(context, value)) return std::nullopt;
      const int offset = static_cast<int>(random_() % 48) - 8;
      value += static_cast<uint64_t>(int64_t{offset});
      text = fmt::format("{:+}({})", offset, text);
    }
    return text + Type(loads > 0, context, value);
  }

 private:
  struct Term {
    std::string text;
    uint64_t value;
  };

  Term Source(SelfContext& context) {
    const uint64_t number = random_() % 2 == 0 ? random_() : arena_.Address(random_);
    if (random_() % 4 == 0) return {fmt::format("\\{}", number), number};
    if (kind_ == ProbeKind::kReturn) return {"$retval", context.regs[Reg::kAx]};
    static constexpr std::pair<const char*, Reg> kRegisters[] = {
        {"%di", Reg::kDi}, {"%si", Reg::kSi}, {"%dx", Reg::kDx}, {"%cx", Reg::kCx},
        {"%r8", Reg::kR8}, {"%r9", Reg::kR9}, {"%ip", Reg::kIp}, {"%orig_ax", Reg::kOrigAx}};
    const auto& [name, reg] = kRegisters[random_() % std::size(kRegisters)];
    return {name, context.regs[reg]};
  }

  static bool Load(SelfContext& context, uint64_t& value) {
    uint64_t word;
    const auto bytes = std::as_writable_bytes(std::span(&word, 1));
    if (context.ReadMemory(value, bytes) != sizeof(word)) return false;
    value = word;
    return true;
  }

  std::string Type(bool in_memory, SelfContext& context, uint64_t address) {
    static constexpr const char* kNumbers[] = {"",     ":u8",  ":u16", ":u32", ":u64",
                                               ":s8",  ":s16", ":s32", ":s64", ":x8",
                                               ":x16", ":x32", ":x64", ":char"};
    if (in_memory && random_() % 4 == 0) return StringType(context, address);
    std::string type = kNumbers[random_() % std::size(kNumbers)];
    if (random_() % 5 == 0) {
      const unsigned bits = 8u << (random_() % 4);
      const unsigned width = 1 + static_cast<unsigned>(random_() % bits);
      type = fmt::format(":b{}@{}/{}", width, random_() % (bits - width + 1), bits);
    }
    if (in_memory && !type.empty() && random_() % 4 == 0) {
      type += fmt::format("[{}]", 1 + random_() % 9);
    }
    return type;
  }

  // A failed pointer in an array is an inner load too.
  std::string StringType(SelfContext& context, uint64_t address) {
    const std::string type = random_() % 2 == 0 ? ":string" : ":ustring";
    const size_t count = random_() % 5;
    std::vector<std::byte> pointers(8 * count);
    const bool readable = context.ReadMemory(address, pointers) == pointers.size();
    return count == 0 || !readable ? type : type + fmt::format("[{}]", count);
  }

  std::mt19937_64& random_;
  const Arena& arena_;
  ProbeKind kind_;
};

class KernelValues : public ::testing::TestWithParam<ProbeKind> {
 protected:
  void SetUp() override {
    auto opened = KernelUprobes::Open();
    if (!opened.ok()) {
      GTEST_SKIP() << "no uprobe_events to compare with: " << opened.error().ToString();
    }
    kernel_.emplace(std::move(*opened));
    group_ = fmt::format("lv{}{}", getpid(), kind() == ProbeKind::kReturn ? "r" : "p");
    auto instance = TraceInstance::Create(group_);
    ASSERT_TRUE(instance.ok()) << instance.error().ToString();
    instance_.emplace(std::move(*instance));
    function_ = reinterpret_cast<uint64_t>(&ProbedByTest);
    location_ = LocationOf(function_);
    prctl(PR_SET_NAME, "lang values", 0, 0, 0);
  }

  void TearDown() override {
    if (!instance_) return;
    // Already gone unless the test failed half way.
    static_cast<void>(instance_->Disable(group_, "e"));
    kernel_->Put("-:" + group_ + "/", "");
  }

  static ProbeKind kind() { return GetParam(); }

  SelfContext ContextOf(const Call& call) const {
    SelfContext context;
    static constexpr Reg kOrder[] = {Reg::kDi, Reg::kSi, Reg::kDx, Reg::kCx, Reg::kR8, Reg::kR9};
    for (size_t i = 0; i < 6; ++i)
      context.regs[kOrder[i]] = call.arguments[i];
    context.regs[Reg::kAx] = call.arguments[5];
    context.regs[Reg::kIp] = function_;
    context.regs[Reg::kOrigAx] = ~uint64_t{0};
    context.base = function_ - location_.offset;
    context.task_comm = "lang values";
    return context;
  }

  // Defines, hits once, compares everything, deletes.
  void CompareOneEvent(const std::string& arguments, const Call& call);
  std::string HitOnce(const Call& call);
  void CompareFiles(const EventSchema& schema);
  std::string OurLine(const Definition& definition, const Call& call, const std::string& theirs);

  RealNamespace files_;
  std::string group_;
  std::optional<KernelUprobes> kernel_;
  std::optional<TraceInstance> instance_;
  uint64_t function_ = 0;
  OwnLocation location_;
};

std::string KernelValues::HitOnce(const Call& call) {
  const Status enabled = instance_->Enable(group_, "e");
  EXPECT_TRUE(enabled.ok()) << enabled.error().ToString();
  const auto& a = call.arguments;
  ProbedByTest(a[0], a[1], a[2], a[3], a[4], a[5]);
  std::string text = instance_->TakeTrace();
  EXPECT_TRUE(instance_->Disable(group_, "e").ok());
  return text;
}

// The name in front of "-TID". The kernel's table of names is small, shared by all tracers and
// keeps those of dead threads whose number came round again: it proves nothing ($comm does).
std::string CommOf(const std::string& line) {
  const size_t end = line.find(fmt::format("-{} ", gettid()));
  const size_t start = line.find_first_not_of(' ');
  return end == std::string::npos || start > end ? "no name" : line.substr(start, end - start);
}

// Takes time, CPU, flags, return address and the comm from their line; everything else must agree.
std::string KernelValues::OurLine(const Definition& definition, const Call& call,
                                  const std::string& theirs) {
  SelfContext context = ContextOf(call);
  std::vector<std::byte> payload;
  FetchLimits limits;
  limits.kernel_string_rules = true;
  if (Fetch(*definition.program, limits, context, payload) == FetchOutcome::kDropped) return "";
  const auto values = DecodePayload(definition.schema, payload);
  EXPECT_TRUE(values.ok());
  const size_t bracket = theirs.find('[');
  if (bracket == std::string::npos) return "no line";
  unsigned long seconds = 0, microseconds = 0, address = 0;
  char flags[16] = {};
  TraceLine line;
  line.comm = CommOf(theirs);
  line.tid = gettid();
  line.event = "e";
  line.kind = kind();
  line.ip = line.function = function_;
  sscanf(theirs.c_str() + bracket, "[%u] %15s %lu.%lu: e: (0x%lx", &line.cpu, flags, &seconds,
         &microseconds, &address);
  line.flags = flags;
  line.monotonic_ns = (seconds * 1'000'000 + microseconds) * 1000;
  if (kind() == ProbeKind::kReturn) line.ip = address;
  return FormatTraceLine(line, definition.schema, *values) + "\n";
}

void KernelValues::CompareFiles(const EventSchema& schema) {
  const std::string format = instance_->Format(group_, "e");
  const size_t id = format.find("\nID: ");
  ASSERT_NE(id, std::string::npos);
  EXPECT_EQ(format, FormatFile(schema, std::atoi(format.c_str() + id + 5)));
  const std::string profile = ReadTracefs("/sys/kernel/tracing/uprobe_profile");
  EXPECT_NE(profile.find(FormatProfileLine(location_.path, "e", 1) + "\n"), std::string::npos);
}

void KernelValues::CompareOneEvent(const std::string& arguments, const Call& call) {
  SCOPED_TRACE(arguments);
  const std::string line = fmt::format("{}:{}/e {}:{}{}", kind() == ProbeKind::kReturn ? 'r' : 'p',
                                       group_, location_.path, location_.offset, arguments);
  DefinitionSet set(Dialect::kKernel);
  const auto applied = set.Apply(line, files_);
  ASSERT_TRUE(applied.added.has_value()) << applied.verdict.explanation;
  ASSERT_EQ(kernel_->Put(line, applied.verdict.command).error_number, 0);
  const Definition& definition = *set.Find(*applied.added);
  const std::string theirs = HitOnce(call);
  EXPECT_EQ(Escape(OurLine(definition, call, theirs)), Escape(theirs));
  CompareFiles(definition.schema);
  EXPECT_EQ(kernel_->Put("-:" + group_ + "/e", "").error_number, 0);
}

TEST_P(KernelValues, AreTheSame) {
  const char* seed_text = std::getenv("PROBED_LANG_SEED");
  const char* events_text = std::getenv("PROBED_LANG_EVENTS");
  const uint64_t seed = seed_text ? std::strtoull(seed_text, nullptr, 0) : 20260103;
  const int events = events_text ? std::atoi(events_text) : 12;
  std::cout << fmt::format("PROBED_LANG_SEED={} PROBED_LANG_EVENTS={}\n", seed, events);
  std::mt19937_64 random(seed);
  const Arena arena(random);
  for (int i = 0; i < events && !HasFailure(); ++i) {
    Call call;
    for (uint64_t& argument : call.arguments) {
      argument = random() % 4 == 0 ? random() : arena.Address(random);
    }
    SelfContext context = ContextOf(call);
    ArgumentGenerator generator(random, arena, kind());
    std::string arguments;
    for (int n = 0; n < 24; ++n) {
      if (const auto argument = generator.Next(context)) {
        arguments += fmt::format(" v{}={}", n, *argument);
      }
    }
    CompareOneEvent(kernel_->InItsDialect(arguments), call);
  }
}

std::string KindName(const ::testing::TestParamInfo<ProbeKind>& kind) {
  return kind.param == ProbeKind::kReturn ? "Return" : "Entry";
}

INSTANTIATE_TEST_SUITE_P(Kind, KernelValues,
                         ::testing::Values(ProbeKind::kEntry, ProbeKind::kReturn), KindName);

}  // namespace
}  // namespace probed::lang::testing
