// Probes in code that a program has written into memory of its own. It counts its calls itself, and
// adds a constant at each: what the code does must stay what it wrote last.

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

class GeneratedTest : public EngineTest {
 protected:
  GeneratedTest() : GeneratedTest({}) {}
  explicit GeneratedTest(std::vector<std::string> arguments)
      : puppet_("jit", std::move(arguments)), target_(Attach(puppet_)) {}

  struct Counts {
    unsigned long calls = 0, total = 0, own_traps = 0;
  };
  Counts Ask(const std::string& line) {
    Counts counts;
    std::istringstream(puppet_.Ask(line)) >> counts.calls >> counts.total >> counts.own_traps;
    return counts;
  }
  std::string Place() { return fmt::format("{}:{}", puppet_.pid(), puppet_.Ask("where")); }
  ProbeId DefineHere() { return Define(target_, "p:jit/hit " + Place() + " total=+0(%di):u64"); }
  LineError RefusalOf(const std::string& line) {
    auto outcome = engine_->CreateProbes(target_, {line}, {});
    EXPECT_TRUE(outcome.ok());
    if (!outcome.ok() || outcome->errors.empty()) return {};
    return outcome->errors.front();
  }
  std::vector<std::string> GoneNotices() {
    std::vector<std::string> details;
    for (const auto& item : Drain()) {
      const auto* notice = std::get_if<event::TargetNotice>(&item);
      if (notice != nullptr && notice->change == event::TargetChange::kSiteGone)
        details.push_back(notice->detail);
    }
    return details;
  }
  // Told once, and shown ever after.
  void ExpectGone(ProbeId probe, const std::string& why) {
    auto info = engine_->GetProbe(probe);
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->state, ProbeState::kGone);
    EXPECT_EQ(info->mechanism, Mechanism::kNone);
    EXPECT_NE(info->reason.find(why), std::string::npos) << info->reason;
    auto sites = engine_->ListSites(target_);
    bool shown = std::any_of(sites.begin(), sites.end(), [&](const SiteInfo& site) {
      return site.gone && site.probes == std::vector<ProbeId>{probe};
    });
    EXPECT_TRUE(shown);
    auto notices = GoneNotices();
    ASSERT_EQ(notices.size(), 1u);
    EXPECT_NE(notices.front().find(why), std::string::npos) << notices.front();
  }

  Puppet puppet_;
  TargetId target_;
};

TEST_F(GeneratedTest, EveryCallIsAHit) {
  ProbeId probe = DefineHere();
  EXPECT_EQ(Ask("call 1000").total, 1000u);
  auto info = engine_->GetProbe(probe);
  EXPECT_EQ(info->counters.hits, 1000u);
  EXPECT_EQ(info->state, ProbeState::kArmed);
  EXPECT_EQ(info->mechanism, Mechanism::kBoosted);
  EXPECT_NE(info->reason.find("no file"), std::string::npos) << info->reason;
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 1000u);
  for (size_t i = 0; i < hits.size(); ++i)
    EXPECT_EQ(First(hits[i]), i);
  EXPECT_EQ(info->definition, "p:jit/hit " +
                                  fmt::format("{}:{:#018x}", puppet_.pid(), hits.front().ip) +
                                  " total=+0(%di):u64");
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 01");
}

TEST_F(GeneratedTest, SwitchedOffAndOn) {
  ProbeId probe = DefineHere();
  Ask("call 5");
  ASSERT_TRUE(engine_->SetProbesEnabled({probe}, false).ok());
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 01");
  Ask("call 5");
  ASSERT_TRUE(engine_->SetProbesEnabled({probe}, true).ok());
  EXPECT_EQ(Ask("call 5").total, 15u);
  EXPECT_EQ(Counters(probe).hits, 10u);
  ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 01");
}

TEST_F(GeneratedTest, NewCodeIsLeftAlone) {
  ProbeId probe = DefineHere();
  Ask("call 10");
  EXPECT_EQ(Ask("emit 7").calls, 10u);
  EXPECT_EQ(Ask("call 10").total, 80u);
  ExpectGone(probe, "other code");
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 07");
}

// Nobody runs it, nobody asks: it is seen before anything is written.
TEST_F(GeneratedTest, NewCodeIsSeenAtTheLatestAtDetach) {
  DefineHere();
  Ask("frame 7");
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(GoneNotices().size(), 1u);
  EXPECT_EQ(puppet_.Ask("bytes"), "55 b8");
  EXPECT_EQ(Ask("call 3").total, 21u);
}

TEST_F(GeneratedTest, NewCodeIsSeenWhenTheProbeIsSwitchedOffOrDeleted) {
  ProbeId probe = DefineHere();
  Ask("frame 7");
  ASSERT_TRUE(engine_->SetProbesEnabled({probe}, false).ok());
  EXPECT_EQ(puppet_.Ask("bytes"), "55 b8");
  Ask("emit 3");
  ASSERT_TRUE(engine_->SetProbesEnabled({probe}, true).ok());
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 03");
  ExpectGone(probe, "other code");
  ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 03");
  EXPECT_EQ(Ask("call 2").total, 6u);
}

// The first byte, ours, is left alone by the program: it gets its own back, the new operand stays.
TEST_F(GeneratedTest, AnOperandThatIsChangedInPlace) {
  ProbeId probe = DefineHere();
  Ask("call 10");
  Ask("patch 5");
  EXPECT_EQ(Ask("call 10").total, 60u);
  ExpectGone(probe, "operands");
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 05");
}

TEST_F(GeneratedTest, AnOperandThatIsChangedInPlaceAndNeverUsed) {
  DefineHere();
  Ask("patch 5");
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 05");
  EXPECT_EQ(Ask("call 10").total, 50u);
}

TEST_F(GeneratedTest, AnOperandThatIsChangedWhileTheCodeRuns) {
  ProbeId probe = DefineHere();
  auto counts = Ask("race 1000");
  EXPECT_GE(counts.calls, 1000u);
  EXPECT_LE(Counters(probe).hits, counts.calls);
  ExpectGone(probe, "operands");
}

TEST_F(GeneratedTest, MemoryThatIsUnmapped) {
  ProbeId probe = DefineHere();
  Ask("call 10");
  Ask("unmap");
  ExpectGone(probe, "not mapped");
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(Detach(target_).warning, "");
}

TEST_F(GeneratedTest, OtherMemoryAtTheSameAddress) {
  ProbeId gone = DefineHere();
  Ask("call 10");
  Ask("unmap");
  Ask("map");
  Ask("emit 7");
  EXPECT_EQ(Ask("call 10").total, 80u);
  ExpectGone(gone, "other code");
  EXPECT_EQ(Counters(gone).hits, 10u);
  // Defined anew it is another probe, on the code that is there now.
  ProbeId fresh = Define(target_, "p:jit/again " + Place());
  EXPECT_EQ(Ask("call 10").total, 150u);
  EXPECT_EQ(Counters(fresh).hits, 10u);
  EXPECT_EQ(Counters(gone).hits, 10u);
  EXPECT_EQ(engine_->GetProbe(gone)->state, ProbeState::kGone);
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 07");
}

// Nobody has noticed when it is defined anew.
TEST_F(GeneratedTest, DefinedAnewOnCodeThatHasChangedUnseen) {
  ProbeId gone = DefineHere();
  Ask("frame 7");
  ProbeId fresh = Define(target_, "p:jit/again " + Place());
  EXPECT_EQ(Ask("call 10").total, 70u);
  EXPECT_EQ(Counters(fresh).hits, 10u);
  EXPECT_EQ(Counters(gone).hits, 0u);
  EXPECT_EQ(GoneNotices().size(), 1u);
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(puppet_.Ask("bytes"), "55 b8");
}

TEST_F(GeneratedTest, MemoryThatMayNotBeExecutedAnyMore) {
  ProbeId probe = DefineHere();
  Ask("call 10");
  Ask("forbid");
  ExpectGone(probe, "not executable");
  EXPECT_EQ(puppet_.Ask("bytes"), "b8 01");
  Ask("allow");
  EXPECT_EQ(Ask("call 10").total, 20u);
  EXPECT_EQ(Counters(probe).hits, 10u);
}

// As runtimes do when they write to it: unseen, the code is what it was.
TEST_F(GeneratedTest, MemoryThatMayNotBeExecutedForAWhile) {
  ProbeId probe = DefineHere();
  Ask("forbid");
  Ask("allow");
  Ask("call 10");
  EXPECT_EQ(Counters(probe).hits, 10u);
}

// A copy of our breakpoint is none of the program's, nor of the probe.
TEST_F(GeneratedTest, CodeThatTheProgramMoves) {
  for (const char* emit : {"emit 2", "frame 2"}) {
    Ask(emit);
    std::string place = Place();
    ProbeId probe = Define(target_, fmt::format("p:jit/{} {}", emit[0], place));
    unsigned long total = Ask("call 10").total;
    Ask("move");
    EXPECT_EQ(Ask("call 10").total, total + 20);
    EXPECT_EQ(Counters(probe).hits, 10u);
  }
  EXPECT_EQ(Detach(target_).warning, "");
}

TEST_F(GeneratedTest, AnExecEndsIt) {
  ProbeId probe = DefineHere();
  Ask("call 10");
  EXPECT_EQ(puppet_.Ask("exec"), "ready");
  auto info = engine_->GetProbe(probe);
  EXPECT_EQ(info->state, ProbeState::kGone);
  EXPECT_NE(info->reason.find("another program"), std::string::npos) << info->reason;
  EXPECT_EQ(info->counters.hits, 10u);
  EXPECT_EQ(GoneNotices().size(), 1u);
  EXPECT_EQ(Ask("call 10").total, 10u);
}

TEST_F(GeneratedTest, AChildThatIsNotFollowedHasTheProgramsOwnBytes) {
  ProbeId probe = DefineHere();
  EXPECT_EQ(puppet_.Ask("fork 20"), "20");
  EXPECT_EQ(Counters(probe).hits, 0u);
}

TEST_F(EngineTest, AFollowedChildHasTheProbesOfGeneratedCode) {
  Puppet puppet("jit");
  TargetId target = Attach(puppet, {.follow_children = true});
  ProbeId probe = Define(target, fmt::format("p:jit/hit {}:{}", puppet.pid(), puppet.Ask("where")));
  EXPECT_EQ(puppet.Ask("fork 20"), "20");
  EXPECT_EQ(Counters(probe).hits, 20u);
}

class TrappingTest : public GeneratedTest {
 protected:
  TrappingTest() : GeneratedTest({"handle"}) {}
};

TEST_F(TrappingTest, ABreakpointOfTheProgramsOwn) {
  ProbeId probe = DefineHere();
  Ask("call 10");
  Ask("trap");
  EXPECT_EQ(Ask("call 10").own_traps, 10u);
  ExpectGone(probe, "other code");
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(puppet_.Ask("bytes"), "cc c3");
  EXPECT_EQ(RefusalOf("p:jit/again " + Place()).error.reason, "TRAP_INSTRUCTION");
}

// Behind an instruction of one byte nothing has to change for it.
TEST_F(TrappingTest, CodeThatIsFilledWithBreakpoints) {
  Ask("frame 1");
  ProbeId probe = DefineHere();
  EXPECT_EQ(Ask("call 10").total, 10u);
  Ask("fill");
  ExpectGone(probe, "other code");
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(puppet_.Ask("bytes"), "cc cc");
}

TEST_F(GeneratedTest, MemoryOfAFileWithoutAName) {
  Ask("memfd");
  ProbeId probe = DefineHere();
  EXPECT_EQ(Ask("call 10").total, 10u);
  EXPECT_EQ(Counters(probe).hits, 10u);
  EXPECT_EQ(Detach(target_).warning, "");
}

// Written through one mapping, executed through the other.
TEST_F(GeneratedTest, MemoryThatIsMappedTwiceIsRefused) {
  for (const char* way : {"shared", "coherent"}) {
    Ask(way);
    EXPECT_EQ(RefusalOf("p:jit/hit " + Place()).error.reason, "MEMORY_SHARED") << way;
  }
}

TEST_F(GeneratedTest, PlacesThatAreNone) {
  auto reason_at = [&](uint64_t address) {
    return RefusalOf(fmt::format("p:jit/none {}:{:#x}", puppet_.pid(), address)).error.reason;
  };
  uint64_t address = std::stoull(puppet_.Ask("where"), nullptr, 16);
  EXPECT_EQ(reason_at(0x1000), "NOT_MAPPED");
  DefineHere();
  EXPECT_EQ(reason_at(address + 2), "NOT_INSTRUCTION_BOUNDARY");
  auto modules = engine_->ListModules(target_);
  ASSERT_TRUE(modules.ok());
  for (const auto& module : *modules) {
    if (module.path != puppet_.path()) continue;
    EXPECT_EQ(reason_at(module.start), "NOT_EXECUTABLE");
  }
}

TEST_F(GeneratedTest, TheFileOfAnAddressIsNamed) {
  ProbeId probe = Define(target_, "p:t/main " + puppet_.path() + ":main");
  auto sites = engine_->ListSites(target_);
  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites.front().probes.front(), probe);
  auto refused =
      RefusalOf(fmt::format("p:jit/hit {}:{:#x}", puppet_.pid(), sites.front().address)).error;
  EXPECT_EQ(refused.reason, "ADDRESS_IN_FILE");
  EXPECT_EQ(refused.hint, fmt::format("write {}:{:#x}", puppet_.path(), sites.front().offset));
}

TEST_F(GeneratedTest, ExplainedAndTriedOut) {
  std::string place = Place();
  auto explained = engine_->Explain(target_, place);
  ASSERT_TRUE(explained.ok()) << explained.error().ToString();
  EXPECT_EQ(explained->bytes, "b8 01 00 00 00");
  EXPECT_EQ(explained->mechanism, Mechanism::kBoosted);
  EXPECT_NE(explained->reason.find("no file"), std::string::npos);
  auto preview = Create(target_, {"p:jit/hit " + place}, {.validate_only = true});
  ASSERT_EQ(preview.size(), 1u);
  EXPECT_EQ(preview.front().mechanism, Mechanism::kBoosted);
  DefineHere();
  EXPECT_EQ(engine_->Explain(target_, place)->bytes, "b8 01 00 00 00");
  EXPECT_EQ(engine_->Explain(std::nullopt, place).error().reason, "TARGET_NOT_FOUND");
}

TEST_F(GeneratedTest, AnotherProcessIsNamed) {
  Puppet other("jit");
  auto refused = RefusalOf(fmt::format("p:jit/hit {}:{}", other.pid(), other.Ask("where"))).error;
  EXPECT_EQ(refused.reason, "PROCESS_NOT_ATTACHED");
  EXPECT_NE(refused.message.find(std::to_string(other.pid())), std::string::npos);
}

TEST_F(GeneratedTest, ReturnProbesAreRefused) {
  EXPECT_EQ(RefusalOf("r:jit/hit " + Place()).error.reason, "BAD_RETPROBE");
}

}  // namespace
}  // namespace probed::engine
