// Libraries that come and go.

#include <fmt/format.h>

#include "elf/file.h"
#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

TEST_F(EngineTest, APendingProbeIsArmedBeforeTheLibraryRuns) {
  std::string library = Puppet::Path("libplugin.so");
  Puppet puppet("loader", {library});
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("p:t/x {}:plugin_work", library));
  EXPECT_EQ(engine_->GetProbe(probe)->state, ProbeState::kPending);
  puppet.Ask("open");  // its constructor makes the first call
  EXPECT_EQ(engine_->GetProbe(probe)->state, ProbeState::kArmed);
  EXPECT_EQ(puppet.Ask("call 10"), "11");
  EXPECT_EQ(Counters(probe).hits, 11u);
  puppet.Ask("close");
  EXPECT_EQ(engine_->GetProbe(probe)->state, ProbeState::kGone);
  puppet.Ask("open");
  EXPECT_EQ(puppet.Ask("call 2"), "3");
  EXPECT_EQ(Counters(probe).hits, 14u);
}

// The dynamic linker maps the library's data after its code, and then runs its constructor.
TEST_F(EngineTest, AReferenceCounterIsRaisedBeforeTheConstructorRuns) {
  std::string library = Puppet::Path("libplugin.so");
  auto file = elf::File::Open(library);
  ASSERT_TRUE(file.ok());
  auto place = [&](const Result<elf::Symbol>& symbol) {
    return (*file)->ToOffset(symbol->address)->value;
  };
  LaunchOptions options;
  options.argv = {Puppet::Path("linked")};
  auto target = engine_->Launch(options);
  ASSERT_TRUE(target.ok()) << target.error().ToString();
  Define(target->id, fmt::format("p:t/x {}:{:#x}({:#x}) number=%di:u64", library,
                                 place((*file)->FindFunction("plugin_work")),
                                 place((*file)->FindObject("plugin_semaphore"))));
  ASSERT_TRUE(engine_->Resume(target->id).ok());
  std::vector<uint64_t> numbers;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (numbers.size() < 2 && std::chrono::steady_clock::now() < deadline) {
    for (const auto& item : events_->Next(100, std::chrono::milliseconds(100))) {
      if (const auto* hit = std::get_if<event::HitRecord>(&item)) numbers.push_back(First(*hit));
    }
  }
  EXPECT_EQ(numbers, (std::vector<uint64_t>{2, 100}));
}

// The program says itself where a call of the name goes, and how often it made one.
TEST_F(EngineTest, AnIfuncMeansTheImplementationThatTheProcessChose) {
  Puppet puppet("ifunc");
  TargetId target = Attach(puppet);
  unsigned long chosen = std::stoul(puppet.Ask("where"), nullptr, 16);
  ProbeId probe = Define(target, "p:t/x libc.so.6:strlen text=+0(%di):string");
  auto sites = engine_->ListSites(target);
  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites.front().address, chosen);
  EXPECT_NE(engine_->GetProbe(probe)->reason.find("IFUNC"), std::string::npos);
  EXPECT_EQ(puppet.Ask("call"), "100");
  auto hits = DrainHits();
  EXPECT_GE(hits.size(), 100u);  // the C library uses it too
  auto place = engine_->Explain(target, "libc.so.6:strlen");
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->offset, sites.front().offset);
}

// Before its first instruction a process has not chosen yet.
TEST_F(EngineTest, AnIfuncOfTheProgramsOwn) {
  Puppet puppet("ifunc");
  TargetId target = Attach(puppet);
  LaunchOptions options;
  options.argv = {Puppet::Path("ifunc")};
  auto launched = engine_->Launch(options);
  ASSERT_TRUE(launched.ok());
  auto early =
      engine_->CreateProbes(launched->id, {fmt::format("p:t/x {}:own", options.argv[0])}, {});
  ASSERT_TRUE(early.ok());
  ASSERT_EQ(early->errors.size(), 1u);
  EXPECT_EQ(early->errors.front().error.reason, "SYMBOL_IS_IFUNC");
  ProbeId own = Define(target, fmt::format("p:t/own {}:own", puppet.path()));
  EXPECT_EQ(puppet.Ask("own"), "7");
  EXPECT_EQ(Counters(own).hits, 1u);
}

TEST_F(EngineTest, AModuleCanBeNamedByItsBaseName) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, "p:t/x counter:work");
  EXPECT_EQ(puppet.Ask("3"), "3 318");
  EXPECT_EQ(Counters(probe).hits, 3u);
  auto modules = engine_->ListModules(target);
  ASSERT_TRUE(modules.ok());
  EXPECT_TRUE(std::any_of(modules->begin(), modules->end(), [](const auto& module) {
    return module.path.find("libc.so.6") != std::string::npos && module.build_id.size() == 40;
  }));
}

}  // namespace
}  // namespace probed::engine
