// The whole API against the real program, attached to a real process.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/daemon/running_daemon.h"

namespace probed::daemon {
namespace {

class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.ready());
    victim_ = StartVictim();
  }

  std::vector<v1::Probe> List(const v1::Target& target) {
    v1::ListProbesRequest request;
    request.set_parent(target.name());
    v1::ListProbesResponse response;
    EXPECT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::ListProbes, request, response).ok());
    return {response.probes().begin(), response.probes().end()};
  }

  RunningDaemon daemon_;
  Client client_ = daemon_.Connect();
  std::unique_ptr<ChildProcess> victim_;
};

TEST_F(ApiTest, ServerInfo) {
  v1::ServerInfo info;
  ASSERT_TRUE(Call(*client_.server, &v1::ServerService::Stub::GetServerInfo,
                   v1::GetServerInfoRequest(), info)
                  .ok());
  EXPECT_EQ(info.pid(), daemon_.process().pid());
  EXPECT_FALSE(info.version().empty());
  EXPECT_FALSE(info.mechanisms().empty());
  EXPECT_GT(info.limits().max_probes(), 0u);
}

TEST_F(ApiTest, AttachGetListDetach) {
  const v1::Target target = Attach(client_, victim_->pid());
  EXPECT_EQ(target.pid(), victim_->pid());
  EXPECT_EQ(target.executable(), VictimPath());
  EXPECT_EQ(TracerOf(victim_->pid()), daemon_.process().pid());
  v1::GetTargetRequest get;
  get.set_name(target.name());
  v1::Target got;
  ASSERT_TRUE(Call(*client_.targets, &v1::TargetService::Stub::GetTarget, get, got).ok());
  EXPECT_EQ(got.name(), target.name());
  v1::ListTargetsResponse list;
  ASSERT_TRUE(
      Call(*client_.targets, &v1::TargetService::Stub::ListTargets, v1::ListTargetsRequest(), list)
          .ok());
  EXPECT_EQ(list.targets_size(), 1);
  v1::DetachTargetRequest detach;
  detach.set_name(target.name());
  v1::DetachTargetResponse detached;
  ASSERT_TRUE(
      Call(*client_.targets, &v1::TargetService::Stub::DetachTarget, detach, detached).ok());
  EXPECT_TRUE(detached.detached());
  EXPECT_EQ(detached.warning(), "");
  EXPECT_EQ(ProcNumber(victim_->pid(), "TracerPid"), 0);
  victim_->Say("3");
  EXPECT_EQ(victim_->ReadLine(), "4");
}

TEST_F(ApiTest, FindsProcesses) {
  v1::FindProcessesRequest find;
  v1::FindProcessesResponse found;
  auto ask = [&] {
    found.Clear();
    return Call(*client_.targets, &v1::TargetService::Stub::FindProcesses, find, found);
  };
  EXPECT_EQ(ReasonOf(ask()), "INVALID_SELECTION");
  find.set_executable("victim");
  EXPECT_EQ(ReasonOf(ask()), "INVALID_SELECTION");
  find.set_executable(VictimPath());
  ASSERT_TRUE(ask().ok());
  auto is_victim = [&](const v1::Process& process) { return process.pid() == victim_->pid(); };
  EXPECT_EQ(std::count_if(found.processes().begin(), found.processes().end(), is_victim), 1);
  EXPECT_EQ(found.processes(0).executable(), VictimPath());
  find.mutable_wait()->set_seconds(11);
  EXPECT_EQ(ReasonOf(ask()), "INVALID_SELECTION");
  find.mutable_wait()->set_seconds(0);
  find.mutable_wait()->set_nanos(200'000'000);
  find.set_name("nobody is called so");
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(found.processes_size(), 0);
}

TEST_F(ApiTest, UnknownThingsAreNotFound) {
  v1::Target target;
  v1::AttachTargetRequest attach;
  attach.set_pid(0x3ffffff);
  auto status = Call(*client_.targets, &v1::TargetService::Stub::AttachTarget, attach, target);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "PROCESS_NOT_FOUND");
  v1::GetTargetRequest get;
  get.set_name("targets/1-1");
  status = Call(*client_.targets, &v1::TargetService::Stub::GetTarget, get, target);
  EXPECT_EQ(ReasonOf(status), "TARGET_NOT_FOUND");
  v1::GetProbeRequest get_probe;
  get_probe.set_name("targets/1-1/probes/1");
  v1::Probe probe;
  status = Call(*client_.probes, &v1::ProbeService::Stub::GetProbe, get_probe, probe);
  EXPECT_EQ(ReasonOf(status), "PROBE_NOT_FOUND");
}

TEST_F(ApiTest, ProbesLiveAndCount) {
  const v1::Target target = Attach(client_, victim_->pid());
  const auto probes = Create(client_, target,
                             {"p:t/tick " + VictimPath() + ":tick n=$arg1 text=+0($arg2):string",
                              "r:t/ret " + VictimPath() + ":tick value=$retval"});
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes[0].state(), v1::Probe::STATE_ARMED) << probes[0].reason();
  victim_->Say("10");
  EXPECT_EQ(victim_->ReadLine(), "11");
  for (const v1::Probe& probe : List(target))
    EXPECT_EQ(probe.counters().hits(), 10u);

  v1::UpdateProbeRequest update;
  update.mutable_probe()->set_name(probes[0].name());
  update.mutable_update_mask()->add_paths("enabled");
  v1::Probe updated;
  ASSERT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::UpdateProbe, update, updated).ok());
  EXPECT_FALSE(updated.enabled());
  victim_->Say("5");
  EXPECT_EQ(victim_->ReadLine(), "17");
  v1::GetProbeRequest get;
  get.set_name(probes[0].name());
  v1::Probe got;
  ASSERT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::GetProbe, get, got).ok());
  EXPECT_EQ(got.counters().hits(), 10u);
  EXPECT_EQ(got.state(), v1::Probe::STATE_DISABLED);

  update.mutable_update_mask()->add_paths("definition");
  EXPECT_EQ(ReasonOf(Call(*client_.probes, &v1::ProbeService::Stub::UpdateProbe, update, updated)),
            "FIELD_NOT_MUTABLE");

  v1::DeleteProbesRequest remove;
  for (const v1::Probe& probe : probes)
    remove.add_names(probe.name());
  google::protobuf::Empty empty;
  ASSERT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::DeleteProbes, remove, empty).ok());
  EXPECT_TRUE(List(target).empty());
  EXPECT_EQ(ReasonOf(Call(*client_.probes, &v1::ProbeService::Stub::DeleteProbes, remove, empty)),
            "PROBE_NOT_FOUND");
}

TEST_F(ApiTest, FiltersAreSetAndChanged) {
  const v1::Target target = Attach(client_, victim_->pid());
  v1::CreateProbesRequest create;
  create.set_parent(target.name());
  create.add_definitions("p:t/tick " + VictimPath() + ":tick n=$arg1:s32");
  create.set_filter("m == 1");
  v1::CreateProbesResponse created;
  auto status = Call(*client_.probes, &v1::ProbeService::Stub::CreateProbes, create, created);
  EXPECT_EQ(ReasonOf(status), "FIELD_NOT_FOUND");
  const auto verdicts = DetailOf<v1::LineVerdicts>(status).value();
  ASSERT_EQ(verdicts.verdicts_size(), 1);
  EXPECT_TRUE(verdicts.verdicts(0).in_filter());
  EXPECT_EQ(verdicts.verdicts(0).command(), "m == 1");
  EXPECT_EQ(verdicts.verdicts(0).caret(), 2);
  create.set_filter("n < 0");
  ASSERT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::CreateProbes, create, created).ok());
  ASSERT_EQ(created.probes(0).filter(), "n < 0");
  victim_->Say("10");
  EXPECT_EQ(victim_->ReadLine(), "11");
  EXPECT_EQ(List(target)[0].counters().filtered(), 10u);
  EXPECT_EQ(List(target)[0].counters().recorded(), 0u);

  v1::UpdateProbeRequest update;
  update.mutable_probe()->set_name(created.probes(0).name());
  update.mutable_probe()->set_filter("n >=");
  update.mutable_update_mask()->add_paths("filter");
  v1::Probe updated;
  status = Call(*client_.probes, &v1::ProbeService::Stub::UpdateProbe, update, updated);
  EXPECT_EQ(ReasonOf(status), "INVALID_VALUE");
  EXPECT_EQ(DetailOf<v1::LineVerdicts>(status)->verdicts(0).message(),
            "Invalid value (did you forget quotes)?");
  EXPECT_EQ(List(target)[0].filter(), "n < 0");
  update.mutable_probe()->set_filter("0");
  ASSERT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::UpdateProbe, update, updated).ok());
  EXPECT_EQ(updated.filter(), "");
  EXPECT_TRUE(updated.enabled());
  victim_->Say("5");
  EXPECT_EQ(victim_->ReadLine(), "17");
  EXPECT_EQ(List(target)[0].counters().recorded(), 5u);
}

TEST_F(ApiTest, PagesWalkAllProbes) {
  const v1::Target target = Attach(client_, victim_->pid());
  std::vector<std::string> lines;
  for (int i = 0; i < 7; ++i)
    lines.push_back("p:t/e" + std::to_string(i) + " " + VictimPath() + ":tick");
  ASSERT_EQ(Create(client_, target, lines).size(), 7u);
  v1::ListProbesRequest request;
  request.set_parent("targets/-");
  request.set_page_size(3);
  std::set<std::string> names;
  int pages = 0;
  do {
    v1::ListProbesResponse response;
    ASSERT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::ListProbes, request, response).ok());
    for (const v1::Probe& probe : response.probes())
      names.insert(probe.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && ++pages < 5);
  EXPECT_EQ(names.size(), 7u);
  EXPECT_EQ(pages, 2);
}

TEST_F(ApiTest, SitesCarryTheirProbes) {
  const v1::Target target = Attach(client_, victim_->pid());
  const auto probes = Create(
      client_, target, {"p:t/a " + VictimPath() + ":tick", "p:t/b " + VictimPath() + ":tick"});
  v1::ListSitesRequest request;
  request.set_parent(target.name());
  v1::ListSitesResponse response;
  ASSERT_TRUE(Call(*client_.probes, &v1::ProbeService::Stub::ListSites, request, response).ok());
  ASSERT_EQ(response.sites_size(), 1);
  EXPECT_EQ(response.sites(0).probes_size(), 2);
  EXPECT_EQ(response.sites(0).target(), target.name());
  EXPECT_NE(response.sites(0).mechanism(), v1::MECHANISM_UNSPECIFIED);
}

TEST_F(ApiTest, LastOfTenThousandLinesIsWrong) {
  const v1::Target target = Attach(client_, victim_->pid());
  v1::CreateProbesRequest request;
  request.set_parent(target.name());
  for (int i = 0; i < 9'999; ++i)
    request.add_definitions("p:t/e" + std::to_string(i) + " " + VictimPath() + ":tick n=$arg1");
  request.add_definitions("p:t/last " + VictimPath() + ":tick n=%nosuchregister");
  v1::CreateProbesResponse response;
  const auto status =
      Call(*client_.probes, &v1::ProbeService::Stub::CreateProbes, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  const auto verdicts = DetailOf<v1::LineVerdicts>(status);
  ASSERT_TRUE(verdicts);
  ASSERT_EQ(verdicts->verdicts_size(), 1);
  EXPECT_EQ(verdicts->verdicts(0).line(), 9'999u);
  EXPECT_EQ(verdicts->verdicts(0).message(), "Invalid register name");
  EXPECT_TRUE(verdicts->verdicts(0).has_caret());
  EXPECT_TRUE(List(target).empty());
  victim_->Say("1");
  EXPECT_EQ(victim_->ReadLine(), "2");
}

TEST_F(ApiTest, ModulesAndSymbols) {
  const v1::Target target = Attach(client_, victim_->pid());
  v1::ListModulesRequest modules_request;
  modules_request.set_parent(target.name());
  v1::ListModulesResponse modules;
  ASSERT_TRUE(
      Call(*client_.symbols, &v1::SymbolService::Stub::ListModules, modules_request, modules).ok());
  EXPECT_TRUE(std::any_of(modules.modules().begin(), modules.modules().end(),
                          [](const v1::Module& module) { return module.path() == VictimPath(); }));

  v1::SearchSymbolsRequest search;
  search.set_parent(target.name());
  search.set_path(VictimPath());
  search.set_pattern("t?ck");
  v1::SearchSymbolsResponse symbols;
  ASSERT_TRUE(
      Call(*client_.symbols, &v1::SymbolService::Stub::SearchSymbols, search, symbols).ok());
  EXPECT_EQ(symbols.symbols_size(), 2);

  v1::ResolveSymbolRequest resolve;
  resolve.set_parent(target.name());
  resolve.set_location(VictimPath() + ":tick");
  v1::ResolveSymbolResponse resolved;
  ASSERT_TRUE(
      Call(*client_.symbols, &v1::SymbolService::Stub::ResolveSymbol, resolve, resolved).ok());
  EXPECT_GT(resolved.symbol().offset(), 0u);
  const auto same = [&](const v1::Symbol& symbol) {
    return symbol.address() == resolved.symbol().address() &&
           symbol.offset() == resolved.symbol().offset();
  };
  EXPECT_TRUE(std::any_of(symbols.symbols().begin(), symbols.symbols().end(), same))
      << resolved.DebugString() << symbols.DebugString();

  v1::ExplainLocationRequest explain;
  explain.set_parent(target.name());
  explain.set_location(VictimPath() + ":tick");
  v1::ExplainLocationResponse explained;
  ASSERT_TRUE(
      Call(*client_.symbols, &v1::SymbolService::Stub::ExplainLocation, explain, explained).ok());
  EXPECT_FALSE(explained.instruction().empty());
  EXPECT_TRUE(explained.on_boundary());
  EXPECT_EQ(explained.tactic(), "jump");
  ASSERT_FALSE(explained.region().empty());
  EXPECT_EQ(explained.region(0), explained.instruction());
  for (bool on : {true, false}) {
    v1::SetOptimizationRequest optimization;
    optimization.set_enabled(on);
    v1::ServerInfo info;
    ASSERT_TRUE(
        Call(*client_.server, &v1::ServerService::Stub::SetOptimization, optimization, info).ok());
    ASSERT_TRUE(
        Call(*client_.symbols, &v1::SymbolService::Stub::ExplainLocation, explain, explained).ok());
    EXPECT_EQ(explained.mechanism(), on ? v1::MECHANISM_OPTIMIZED : v1::MECHANISM_BOOSTED);
    EXPECT_EQ(explained.reason().starts_with("optimization is off"), !on) << explained.reason();
  }
  explain.set_location(VictimPath() + ":scope::tick");
  EXPECT_EQ(ReasonOf(Call(*client_.symbols, &v1::SymbolService::Stub::ExplainLocation, explain,
                          explained)),
            "SYMBOL_NOT_FOUND");

  v1::ExplainFileRequest file;
  file.set_parent(target.name());
  file.set_path(VictimPath());
  v1::ExplainFileResponse counted;
  ASSERT_TRUE(Call(*client_.symbols, &v1::SymbolService::Stub::ExplainFile, file, counted).ok());
  uint64_t instructions = 0;
  for (const v1::PlanShare& share : counted.shares())
    instructions += share.instructions();
  EXPECT_GT(instructions, 50u);
}

TEST_F(ApiTest, LaunchedProgramWaitsForResume) {
  v1::LaunchTargetRequest launch;
  launch.add_argv("/bin/true");
  v1::Target target;
  const auto status =
      Call(*client_.targets, &v1::TargetService::Stub::LaunchTarget, launch, target);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(TracerOf(target.pid()), daemon_.process().pid());
  v1::ResumeTargetRequest resume;
  resume.set_name(target.name());
  ASSERT_TRUE(Call(*client_.targets, &v1::TargetService::Stub::ResumeTarget, resume, target).ok());
  EXPECT_TRUE(Eventually([&] { return ProcNumber(target.pid(), "TracerPid") <= 0; }));
}

// Permission comes from who connected, not from what the request says.
TEST_F(ApiTest, AnotherUserSeesAndTouchesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to connect as another user";
  const v1::Target target = Attach(client_, victim_->pid());
  const auto probes = Create(client_, target, {"p:t/tick " + VictimPath() + ":tick"});
  auto other = daemon_.ConnectAs(65534);
  ASSERT_TRUE(other);
  v1::AttachTargetRequest attach;
  attach.set_pid(victim_->pid());
  v1::Target got;
  auto status = Call(*other->targets, &v1::TargetService::Stub::AttachTarget, attach, got);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ReasonOf(status), "UID_MISMATCH");
  v1::ListTargetsResponse list;
  ASSERT_TRUE(
      Call(*other->targets, &v1::TargetService::Stub::ListTargets, v1::ListTargetsRequest(), list)
          .ok());
  EXPECT_EQ(list.targets_size(), 0);
  v1::FindProcessesRequest find;
  find.set_executable(VictimPath());
  v1::FindProcessesResponse found;
  ASSERT_TRUE(Call(*other->targets, &v1::TargetService::Stub::FindProcesses, find, found).ok());
  EXPECT_EQ(found.processes_size(), 0);
  v1::DeleteProbeRequest remove;
  remove.set_name(probes.at(0).name());
  google::protobuf::Empty empty;
  status = Call(*other->probes, &v1::ProbeService::Stub::DeleteProbe, remove, empty);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  // The same answer for a process that probed is not attached to.
  v1::GetTargetRequest get;
  get.set_name("targets/1-0");
  status = Call(*other->targets, &v1::TargetService::Stub::GetTarget, get, got);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace probed::daemon
