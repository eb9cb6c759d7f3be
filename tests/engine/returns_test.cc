// Return probes against awkward control flow; the puppet checks itself.

#include <fmt/format.h>

#include "elf/file.h"
#include "engine/probe/address_space.h"
#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

using probe::AddressSpace;

// With true: what can be a jump is one before the program goes on.
class ReturnTest : public EngineTest, public ::testing::WithParamInterface<bool> {
 protected:
  ReturnTest() : EngineTest(Options()) {}
  static EngineOptions Options() {
    EngineOptions options;
    options.optimization.enabled = GetParam();
    options.optimization.ring_bytes = 8u << 20;
    return options;
  }

  ProbeId Define(TargetId target, const std::string& line) {
    ProbeId id = EngineTest::Define(target, line);
    defined_.push_back(id);
    Optimize();
    return id;
  }
  // A new site may make breakpoints of others, for a while.
  void Optimize() {
    if (!GetParam()) return;
    for (ProbeId id : defined_)
      EXPECT_TRUE(BecomesOptimized(id));
  }
  std::string Line(const std::string& function, const std::string& fetch = "") {
    return fmt::format("r:t/{} {}:{} {}", function, puppet_.path(), function, fetch);
  }
  std::vector<ProbeId> defined_;
  Puppet puppet_{"control"};
  TargetId target_ = Attach(puppet_);
};

INSTANTIATE_TEST_SUITE_P(Mechanism, ReturnTest, ::testing::Bool(), [](const auto& mechanism) {
  return mechanism.param ? "Jump" : "Breakpoint";
});

TEST_P(ReturnTest, TenThousandDeepRecursion) {
  ProbeId probe = Define(target_, Line("recurse", "$retval:s64"));
  EXPECT_EQ(puppet_.Ask("recurse 10000"), "10000");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 10001u);
  for (size_t i = 0; i < hits.size(); ++i)
    ASSERT_EQ(First(hits[i]), i);
  EXPECT_EQ(Counters(probe).hits, 10001u);
  EXPECT_EQ(Counters(probe).missed, 0u);
}

TEST_P(ReturnTest, OverMaxActiveIsMissedAndRunsUntouched) {
  auto probes = Create(target_, {Line("recurse")}, {.max_active = 10});
  EXPECT_EQ(puppet_.Ask("recurse 99"), "99");
  auto counters = Counters(probes.front().id);
  EXPECT_EQ(counters.hits, 100u);
  EXPECT_EQ(counters.recorded, 10u);
  EXPECT_EQ(counters.missed, 90u);
}

TEST_P(ReturnTest, TailCallRecordsBothInnerFirst) {
  Define(target_, Line("tail_caller", "$retval:s64"));
  Define(target_, Line("tail_callee", "$retval:s64"));
  EXPECT_EQ(puppet_.Ask("tail 4"), "15");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].schema->event, "tail_callee");
  EXPECT_EQ(hits[1].schema->event, "tail_caller");
  EXPECT_EQ(hits[0].ip, hits[1].ip);
  EXPECT_EQ(First(hits[0]), 15u);
  EXPECT_EQ(First(hits[1]), 15u);
}

TEST_P(ReturnTest, LongjmpLeavesNoGhosts) {
  ProbeId jumper = Define(target_, Line("jumper"));
  ProbeId recurse = Define(target_, Line("recurse"));
  EXPECT_EQ(puppet_.Ask("longjmp 30"), "30 3");
  EXPECT_EQ(Counters(recurse).recorded, 4u);
  EXPECT_EQ(Counters(jumper).hits, 180u);
  EXPECT_EQ(Counters(jumper).recorded, 0u);
  Detach(target_);
  EXPECT_EQ(puppet_.Ask("recurse 5"), "5");
}

TEST_P(ReturnTest, EveryAbiReturnKindStaysIntact) {
  std::vector<std::string> lines;
  for (const char* function :
       {"ret_int", "ret_int128", "ret_float", "ret_double", "ret_long_double", "ret_pair",
        "ret_big", "ret_complex", "ret_complex_long"}) {
    lines.push_back(Line(function, "$retval"));
  }
  for (const auto& probe : Create(target_, lines))
    defined_.push_back(probe.id);
  Optimize();
  EXPECT_EQ(puppet_.Ask("abi"), "0");
  EXPECT_EQ(DrainHits().size(), lines.size());
}

TEST_P(ReturnTest, EntryArgumentsAreThereAtTheReturn) {
  Define(target_, Line("recurse", "depth=$arg1:s64 result=$retval:s64"));
  puppet_.Ask("recurse 3");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 4u);
  for (size_t i = 0; i < hits.size(); ++i)
    EXPECT_EQ(First(hits[i]), i);
}

TEST_P(ReturnTest, RecordNamesTheCallerAndTheFunction) {
  Define(target_, Line("tail_callee", "sp=$stack"));
  ProbeId entry = Define(target_, fmt::format("p:t/in {}:tail_callee sp=$stack", puppet_.path()));
  puppet_.Ask("tail 1");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].probe, entry);
  EXPECT_EQ(hits[1].function, hits[0].ip);
  EXPECT_NE(hits[1].ip, hits[0].ip);
  EXPECT_EQ(First(hits[1]), First(hits[0]) + 8);
}

TEST_P(ReturnTest, DeletedAndDisabledProbesGiveReturnAddressesBack) {
  ProbeId kept = Define(target_, Line("wait_inside", "$retval:s64"));
  ProbeId deleted = Define(target_, fmt::format("r:t/other {}:wait_inside", puppet_.path()));
  EXPECT_EQ(puppet_.Ask("wait 1"), "1");
  ASSERT_TRUE(engine_->DeleteProbes({deleted}).ok());
  EXPECT_EQ(puppet_.Ask("look"), "1");  // the other one still needs it
  ASSERT_TRUE(engine_->SetProbesEnabled({kept}, false).ok());
  EXPECT_EQ(puppet_.Ask("look"), "0");
  ASSERT_TRUE(engine_->SetProbesEnabled({kept}, true).ok());
  EXPECT_EQ(puppet_.Ask("done"), "2");
  EXPECT_EQ(Counters(kept).missed, 1u);
  EXPECT_EQ(puppet_.Ask("wait 5"), "1");
  EXPECT_EQ(puppet_.Ask("done"), "6");
  EXPECT_EQ(Counters(kept).recorded, 1u);
}

TEST_P(ReturnTest, PlacesWithoutAReturnAddressAreRefused) {
  auto file = elf::File::Open(puppet_.path());
  ASSERT_TRUE(file.ok());
  uint64_t start = (*file)->ToOffset((*file)->entry())->value;
  LinkAddr inside = (*file)->FindFunction("recurse")->address;
  while ((*file)->ReturnAddressAt(inside) == elf::ReturnAddress::kOnTop)
    inside = inside + 1;
  for (uint64_t offset : {start, (*file)->ToOffset(inside)->value}) {
    auto line = fmt::format("r:t/x {}:{:#x}", puppet_.path(), offset);
    auto outcome = engine_->CreateProbes(target_, {line}, {});
    ASSERT_TRUE(outcome.ok());
    ASSERT_EQ(outcome->errors.size(), 1u) << line;
    EXPECT_EQ(outcome->errors.front().error.reason, "NOT_FUNCTION_ENTRY") << line;
  }
}

// uw_init_context_1 of libgcc, whose name is stripped: the unwinder's only function that is called
// from all of its entries.
TEST_P(ReturnTest, WhereTheUnwinderBeginsIsRefused) {
  Puppet puppet("throwing");
  TargetId target = Attach(puppet);
  AddressSpace space = *AddressSpace::Read(puppet.pid());
  std::string library = space.Resolve("libgcc_s.so.1")->path;
  auto file = elf::File::Open(library);
  ASSERT_TRUE(file.ok());
  size_t refused = 0;
  for (const auto& frame : (*file)->frames()) {
    auto line = fmt::format("r:t/f{:x} {}:{:#x}", frame.start.value, library,
                            (*file)->ToOffset(frame.start)->value);
    auto outcome = engine_->CreateProbes(target, {line}, {});
    ASSERT_TRUE(outcome.ok());
    for (const auto& error : outcome->errors) {
      if (error.error.reason == "LOOKS_AT_RETURN_ADDRESS") ++refused;
    }
  }
  EXPECT_EQ(refused, 1u);
  EXPECT_EQ(puppet.Ask("20"), "20 120");  // with return probes on all others
}

// The program really calls them, so a probe that got through would show.
TEST_P(ReturnTest, FunctionsThatReturnTwiceAreRefused) {
  AddressSpace space = *AddressSpace::Read(puppet_.pid());
  auto libc = elf::File::Open(space.Resolve("libc.so.6")->path);
  ASSERT_TRUE(libc.ok());
  for (const char* name : {"setjmp", "_setjmp", "__sigsetjmp", "getcontext", "vfork", "__vfork"}) {
    auto symbol = (*libc)->FindFunction(name);
    ASSERT_TRUE(symbol.ok()) << name;
    uint64_t offset = (*libc)->ToOffset(symbol->address)->value;
    for (const std::string& place : {std::string(name), fmt::format("{:#x}", offset)}) {
      auto outcome = engine_->CreateProbes(
          target_, {Line("recurse"), fmt::format("r:t/twice libc.so.6:{}", place)}, {});
      ASSERT_TRUE(outcome.ok());
      ASSERT_EQ(outcome->errors.size(), 1u) << place;
      EXPECT_EQ(outcome->errors.front().line, 1u);
      EXPECT_EQ(outcome->errors.front().error.reason, "RETURNS_TWICE") << place;
    }
  }
  Define(target_, "p:t/entry libc.so.6:_setjmp");
  EngineTest::Define(target_, "r:t/swap libc.so.6:swapcontext");
  EXPECT_EQ(puppet_.Ask("longjmp 3"), "3 3");
  EXPECT_EQ(DrainHits().size(), 3u);
}

// The child comes back from the frame that called vfork, on its parent's stack; then the parent.
TEST_P(ReturnTest, ChildOnTheSameStackReturnsFirst) {
  ProbeId probe = Define(target_, Line("share_stack", "$retval:s32"));
  EXPECT_EQ(puppet_.Ask("vfork 3"), "10");
  EXPECT_EQ(puppet_.Ask("recurse 3"), "3");
  EXPECT_EQ(Counters(probe).hits, 1u);
  EXPECT_EQ(Counters(probe).missed, 0u);
  EXPECT_EQ(DrainHits().size(), 2u);
}

TEST_P(ReturnTest, CoroutineReturnsInAnotherThread) {
  Puppet puppet("coroutine");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("r:t/work {}:work $retval:s64", puppet.path()));
  EXPECT_EQ(puppet.Ask("50"), "1275");
  EXPECT_EQ(Counters(probe).recorded, 50u);
  EXPECT_EQ(Counters(probe).missed, 0u);
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 50u);
  for (const auto& hit : hits)
    EXPECT_NE(hit.tid, puppet.pid());
}

// The thread that made the call has ended by then: missed, but the program goes on.
TEST_P(ReturnTest, CoroutineOutlivesItsThread) {
  Puppet puppet("coroutine");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("r:t/work {}:work", puppet.path()));
  EXPECT_EQ(puppet.Ask("-50"), "1275");
  EXPECT_EQ(Counters(probe).hits, 50u);
  EXPECT_EQ(Counters(probe).missed, 50u);
}

TEST_P(ReturnTest, CoroutineThrowsInAnotherThread) {
  Puppet puppet("coroutine", {"throw"});
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("r:t/work {}:work", puppet.path()));
  EXPECT_EQ(puppet.Ask("50"), "1275000");
  EXPECT_EQ(puppet.Ask("-50"), "1275000");
  EXPECT_EQ(Counters(probe).hits, 100u);
  EXPECT_EQ(Counters(probe).missed, 100u);
}

// What a context has kept of a return address is used when nobody waits for that return any more.
TEST_P(ReturnTest, ASuspendedContextOutlivesProbes) {
  Puppet puppet("suspended");
  TargetId target = Attach(puppet);
  ProbeId entry = EngineTest::Define(target, fmt::format("p:t/in {}:leave", puppet.path()));
  ProbeId probe = EngineTest::Define(target, fmt::format("r:t/leave {}:leave", puppet.path()));
  if (GetParam()) {
    EXPECT_TRUE(BecomesOptimized(probe));
  }
  EXPECT_EQ(puppet.Ask(""), "1");
  EXPECT_EQ(puppet.Ask(""), "2");
  ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  EXPECT_EQ(puppet.Ask(""), "3");
  ProbeId swap = EngineTest::Define(target, "r:t/swap libc.so.6:swapcontext");
  EXPECT_EQ(puppet.Ask(""), "4");
  EXPECT_EQ(Counters(entry).hits, 8u);
  EXPECT_EQ(Counters(swap).hits, Counters(swap).missed);
  Detach(target);
  EXPECT_EQ(puppet.Ask(""), "5");
  EXPECT_EQ(puppet.Ask(""), "6");
}

TEST_P(ReturnTest, ExceptionsPassThroughHijackedFrames) {
  Puppet puppet("throwing");
  TargetId target = Attach(puppet);
  auto line = [&](const char* name, const char* symbol) {
    return fmt::format("r:t/{} {}:{}", name, puppet.path(), symbol);
  };
  ProbeId outer = Define(target, line("outer", "_Z5outerl"));
  ProbeId rethrower = Define(target, line("rethrower", "_Z9rethrowerl"));
  ProbeId thrower = Define(target, line("thrower", "_Z7throwerl"));
  EXPECT_EQ(puppet.Ask("20"), "20 120");
  EXPECT_EQ(Counters(outer).recorded, 20u);
  EXPECT_EQ(Counters(thrower).hits, 120u);
  EXPECT_EQ(Counters(thrower).missed, 120u);
  EXPECT_EQ(Counters(rethrower).missed, 20u);
}

// The library has an unwinder of its own, hidden inside it.
TEST_P(ReturnTest, ExceptionsPassWhereTheUnwinderIsInsideALibrary) {
  Puppet puppet("enclosing");
  TargetId target = Attach(puppet);
  std::string library = Puppet::Path("libenclosed.so");
  ProbeId thrower = Define(target, fmt::format("r:t/thrower {}:throw_deep", library));
  ProbeId catcher = Define(target, fmt::format("r:t/catcher {}:catch_one $retval:s64", library));
  EXPECT_EQ(puppet.Ask("20"), "-140");
  EXPECT_EQ(Counters(thrower).hits, 120u);
  EXPECT_EQ(Counters(thrower).missed, 120u);
  EXPECT_EQ(Counters(catcher).recorded, 20u);
}

// backtrace(3) is shown the program's own addresses, and the frames it saw are recorded later.
TEST_P(ReturnTest, BacktraceMissesNothing) {
  std::string unprobed = puppet_.Ask("backtrace 1000");
  ProbeId probe = Define(target_, Line("traced", "$retval:s64"));
  EXPECT_EQ(puppet_.Ask("backtrace 1000"), unprobed);
  auto counters = Counters(probe);
  EXPECT_GT(counters.hits, 1000u);
  EXPECT_EQ(counters.recorded, counters.hits);
  EXPECT_EQ(counters.missed, 0u);
}

}  // namespace
}  // namespace probed::engine
