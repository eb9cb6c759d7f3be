// Requests: all or nothing, fast, and every refusal has a name.

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "elf/file.h"
#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

class RequestTest : public EngineTest {
 protected:
  Error Refused(const std::string& line, const CreateOptions& options = {}) {
    auto outcome = engine_->CreateProbes(target_, {line}, options);
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(outcome->errors.size(), 1u) << line;
    EXPECT_TRUE(engine_->ListProbes(target_).empty());
    return outcome->errors.empty() ? Error{} : outcome->errors.front().error;
  }
  std::string At(const std::string& place) {
    return fmt::format("p:t/x {}:{}", puppet_.path(), place);
  }

  Puppet puppet_{"counter"};
  TargetId target_ = Attach(puppet_);
};

TEST_F(RequestTest, TenThousandLinesWithTheLastOneWrong) {
  std::vector<std::string> lines;
  for (int i = 0; i < 9999; ++i)
    lines.push_back(fmt::format("p:t/e{} {}:work", i, puppet_.path()));
  lines.emplace_back("p:t/last /no/such/file:0x10");
  size_t before = ChangedTextBytes(puppet_.pid());
  auto outcome = engine_->CreateProbes(target_, lines, {});
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->errors.size(), 1u);
  EXPECT_EQ(outcome->errors.front().line, 9999u);
  EXPECT_TRUE(outcome->probes.empty());
  EXPECT_TRUE(engine_->ListProbes(target_).empty());
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), before);
  // No name was left behind.
  EXPECT_NE(Define(target_, fmt::format("p:t/e0 {}:work", puppet_.path())), 0u);
}

TEST_F(RequestTest, RefusalsHaveNames) {
  EXPECT_EQ(Refused(At("0x10000000")).reason, "OFFSET_PAST_EOF");
  EXPECT_EQ(Refused(At("0x10")).reason, "NOT_EXECUTABLE");
  EXPECT_EQ(Refused(At("main+1")).reason, "NOT_INSTRUCTION_BOUNDARY");
  EXPECT_EQ(Refused("-:t/x").reason, "DELETION_LINE");
  Error unknown = Refused(At("wrok"));
  EXPECT_EQ(unknown.reason, "SYMBOL_NOT_FOUND");
  EXPECT_NE(unknown.metadata["suggestions"].find("work"), std::string::npos);
  Error elsewhere = Refused(At("getaddrinfo"));
  EXPECT_NE(elsewhere.metadata["defined_in"].find("libc"), std::string::npos);
  Error language = Refused(At("work") + " %nosuch");
  EXPECT_EQ(language.reason, "BAD_REG_NAME");
}

TEST_F(RequestTest, ValidationChangesNothing) {
  size_t changed = ChangedTextBytes(puppet_.pid());
  auto outcome = engine_->CreateProbes(target_, {At("work")}, {.validate_only = true});
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->errors.empty());
  EXPECT_TRUE(engine_->ListProbes(target_).empty());
  EXPECT_TRUE(engine_->ListSites(target_).empty());
  ASSERT_EQ(outcome->probes.size(), 1u);
  ProbeInfo foretold = outcome->probes.front();
  EXPECT_NE(foretold.reason, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), changed);
  auto created = Create(target_, {At("work")});
  ASSERT_EQ(created.size(), 1u);
  EXPECT_EQ(created.front().state, ProbeState::kArmed);
  EXPECT_EQ(foretold.state, created.front().state);
  EXPECT_EQ(foretold.mechanism, created.front().mechanism);
  // The optimizer looks at it right after.
  ProbeId id = created.front().id;
  EXPECT_TRUE(Eventually([&] {
    auto probe = engine_->GetProbe(id);
    return probe->reason == foretold.reason || probe->mechanism == Mechanism::kOptimized;
  })) << engine_->GetProbe(id)->reason;
  EXPECT_EQ(foretold.symbol, created.front().symbol);
}

TEST_F(RequestTest, AThousandProbesTakeOneShortStop) {
  auto functions = engine_->SearchSymbols(
      {.target = target_, .path = "libc.so.6", .pattern = "*", .limit = 3000});
  ASSERT_TRUE(functions.ok());
  std::vector<std::string> lines;
  for (const auto& function : *functions) {
    if (lines.size() == 1000) break;
    if (function.ifunc || function.offset == 0) continue;
    std::string line = fmt::format("p:t/f{} libc.so.6:{:#x}", lines.size(), function.offset);
    auto valid = engine_->CreateProbes(target_, {line}, {.validate_only = true});
    if (valid.ok() && valid->errors.empty()) lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 1000u);
  uint64_t before = engine_->ListTargets().front().stop_total_ns;
  Create(target_, lines);
  uint64_t stopped = engine_->ListTargets().front().stop_total_ns - before;
  RecordProperty("stop_us", static_cast<int>(stopped / 1000));
  fmt::print("1000 probes: stopped for {} us\n", stopped / 1000);
  EXPECT_EQ(puppet_.Ask("4"), "4 428");
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
}

TEST_F(RequestTest, ExplainSaysWhatAProbeWouldBe) {
  auto place = engine_->Explain(target_, puppet_.path() + ":work");
  ASSERT_TRUE(place.ok()) << place.error().ToString();
  EXPECT_EQ(place->symbol, "work+0x0");
  EXPECT_EQ(place->mechanism, Mechanism::kBoosted);
  EXPECT_GT(place->function_size, 0u);
  EXPECT_FALSE(place->instruction.empty());
  EXPECT_FALSE(engine_->Explain(target_, "nonsense").ok());
}

TEST_F(EngineTest, AReferenceCounterIsRaisedWhileTheSiteIsArmed) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  auto file = elf::File::Open(puppet.path());
  ASSERT_TRUE(file.ok());
  auto object = (*file)->FindObject("semaphore");
  auto function = (*file)->FindFunction("recurse");
  ASSERT_TRUE(object.ok() && function.ok());
  std::string place =
      fmt::format("{}:{:#x}({:#x})", puppet.path(), (*file)->ToOffset(function->address)->value,
                  (*file)->ToOffset(object->address)->value);
  EXPECT_EQ(puppet.Ask("semaphore"), "0");
  ProbeId first = Define(target, "p:t/x " + place);
  ProbeId second = Define(target, "p:t/y " + place);
  EXPECT_EQ(puppet.Ask("semaphore"), "1");
  ASSERT_TRUE(engine_->DeleteProbes({first}).ok());
  EXPECT_EQ(puppet.Ask("semaphore"), "1");
  ASSERT_TRUE(engine_->DeleteProbes({second}).ok());
  EXPECT_EQ(puppet.Ask("semaphore"), "0");
}

TEST_F(EngineTest, NothingIsInjectedUnderSeccomp) {
  Puppet puppet("control");
  ASSERT_EQ(puppet.Ask("seccomp"), "0");
  TargetId target = Attach(puppet);
  auto outcome =
      engine_->CreateProbes(target, {fmt::format("r:t/x {}:recurse", puppet.path())}, {});
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->errors.size(), 1u);
  EXPECT_EQ(outcome->errors.front().error.reason, "SECCOMP_ACTIVE");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  Detach(target);
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
}

// Two strings of 2100 bytes; the kernel takes 4072 bytes a record.
TEST_F(EngineTest, ARecordTooLargeForTheKernelIsRecordedAndLost) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  auto file = elf::File::Open(puppet.path());
  uint64_t offset = (*file)->ToOffset((*file)->FindFunction("take_text")->address)->value;
  auto probes =
      Create(target,
             {fmt::format("p:t/x {}:{:#x} +0(%di):string +0(%di):string", puppet.path(), offset),
              fmt::format("p:t/y {}:{:#x} +0(%di):string", puppet.path(), offset)},
             {.dialect = lang::Dialect::kKernel});
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(puppet.Ask("text 2100"), "2100");
  auto counters = Counters(probes[0].id);
  EXPECT_EQ(counters.hits, 1u);
  EXPECT_EQ(counters.recorded, 1u);
  EXPECT_EQ(counters.lost, 1u);
  EXPECT_EQ(counters.filtered, 0u);
  EXPECT_EQ(Counters(probes[1].id).lost, 0u);
  auto items = Drain();
  auto is_hit = [](const auto& item) { return std::holds_alternative<event::HitRecord>(item); };
  auto is_loss = [](const auto& item) { return std::holds_alternative<event::LossNotice>(item); };
  EXPECT_EQ(std::ranges::count_if(items, is_hit), 1);
  EXPECT_EQ(std::ranges::count_if(items, is_loss), 1);
}

TEST_F(RequestTest, BothDialectsShareTheNames) {
  Create(target_, {At("work")});
  auto file = elf::File::Open(puppet_.path());
  auto offset = (*file)->ToOffset((*file)->FindFunction("work")->address)->value;
  auto kernel = engine_->CreateProbes(target_, {At(fmt::format("{:#x}", offset))},
                                      {.dialect = lang::Dialect::kKernel});
  ASSERT_TRUE(kernel.ok());
  ASSERT_EQ(kernel->errors.size(), 1u);
  EXPECT_EQ(kernel->errors.front().error.reason, "SAME_PROBE");
  EXPECT_EQ(kernel->errors.front().verdict.error_number, EEXIST);
}

TEST_F(RequestTest, AColonWithoutASlashNamesAModuleOfTheKernelInItsDialect) {
  const std::vector<std::string> lines{"p:t/x xfs:xfs_read"};
  EXPECT_TRUE(NamesKernel(target_, lines, {.dialect = lang::Dialect::kKernel}));
  EXPECT_FALSE(NamesKernel(target_, lines, {}));
}

TEST_F(RequestTest, TheTracerAnswers) {
  EXPECT_TRUE(engine_->Healthy(std::chrono::seconds(5)));
}

}  // namespace
}  // namespace probed::engine
