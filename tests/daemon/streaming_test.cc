// WatchEvents against the real program.

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/daemon/running_daemon.h"

namespace probed::daemon {
namespace {

// One WatchEvents call; what came is counted as it is read.
class Watcher {
 public:
  Watcher(Client& client, v1::WatchEventsRequest request) {
    request.set_greet(true);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    reader_ = client.events->WatchEvents(&context_, request);
    v1::WatchEventsResponse greeting;
    subscribed_ = reader_->Read(&greeting) && greeting.events().empty();
    Take(greeting);
  }
  ~Watcher() {
    context_.TryCancel();
    (void)reader_->Finish();
  }

  bool subscribed() const { return subscribed_; }
  uint64_t hits() const { return hits_; }
  uint64_t lost() const { return lost_; }
  const std::vector<v1::Event>& events() const { return events_; }
  const std::map<uint64_t, v1::EventSchema>& schemas() const { return schemas_; }

  // Reads until so many hits have come or been lost.
  bool ReadUntil(uint64_t count) {
    v1::WatchEventsResponse response;
    while (hits_ + lost_ < count) {
      if (!reader_->Read(&response)) return false;
      Take(response);
    }
    return true;
  }
  bool ReadUntilEvent(const std::function<bool(const v1::Event&)>& wanted) {
    v1::WatchEventsResponse response;
    while (reader_->Read(&response)) {
      Take(response);
      for (const v1::Event& event : response.events())
        if (wanted(event)) return true;
    }
    return false;
  }

 private:
  void Take(const v1::WatchEventsResponse& response) {
    for (const auto& schema : response.schemas())
      schemas_[schema.id()] = schema;
    for (const auto& event : response.events()) {
      if (event.has_hit()) {
        ++hits_;
        EXPECT_TRUE(schemas_.contains(event.hit().schema_id()));
        EXPECT_GT(event.sequence(), last_sequence_);
        last_sequence_ = event.sequence();
      }
      if (event.has_loss()) lost_ += event.loss().lost();
      if (events_.size() < 1000) events_.push_back(event);
    }
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchEventsResponse>> reader_;
  bool subscribed_ = false;
  uint64_t hits_ = 0;
  uint64_t lost_ = 0;
  uint64_t last_sequence_ = 0;
  std::vector<v1::Event> events_;
  std::map<uint64_t, v1::EventSchema> schemas_;
};

class StreamingTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.ready());
    victim_ = StartVictim();
  }
  std::string Tick(const std::string& arguments = "") {
    return "p:t/tick " + VictimPath() + ":tick" + arguments;
  }
  bool Traced() { return ProcNumber(victim_->pid(), "TracerPid") != 0; }

  RunningDaemon daemon_;
  Client client_ = daemon_.Connect();
  std::unique_ptr<ChildProcess> victim_;
};

TEST_F(StreamingTest, ValuesAreTyped) {
  const v1::Target target = Attach(client_, victim_->pid());
  Create(client_, target, {Tick(" n=$arg1:u64 text=+0($arg2):string")});
  v1::WatchEventsRequest request;
  request.add_targets(target.name());
  Watcher watcher(client_, request);
  ASSERT_TRUE(watcher.subscribed());
  EXPECT_EQ(watcher.schemas().size(), 1u);
  victim_->Say("3");
  EXPECT_EQ(victim_->ReadLine(), "4");
  ASSERT_TRUE(watcher.ReadUntil(3));
  for (uint64_t i = 0; i < 3; ++i) {
    const v1::Event& event = watcher.events().at(i);
    ASSERT_EQ(event.hit().values_size(), 2);
    EXPECT_EQ(event.hit().values(0).unsigned_value(), i);
    EXPECT_EQ(event.hit().values(1).bytes_value(), "hello");
    EXPECT_EQ(event.hit().pid(), victim_->pid());
    EXPECT_EQ(event.hit().comm(), "daemon_victim");
    EXPECT_GT(event.monotonic_ns(), 0u);
    EXPECT_GT(event.wall_ns(), 0);
  }
  const v1::EventSchema& schema = watcher.schemas().begin()->second;
  EXPECT_EQ(schema.event(), "tick");
  EXPECT_TRUE(schema.probe().starts_with(target.name() + "/probes/"));
}

TEST_F(StreamingTest, TwoClientsOnOneTarget) {
  Client second = daemon_.Connect();
  const v1::Target target = Attach(client_, victim_->pid(), "one");
  EXPECT_EQ(Attach(second, victim_->pid(), "two").name(), target.name());
  Create(client_, target, {Tick()}, "one");
  Watcher first_watcher(client_, {});
  Watcher second_watcher(second, {});
  victim_->Say("5");
  EXPECT_EQ(victim_->ReadLine(), "6");
  EXPECT_TRUE(first_watcher.ReadUntil(5));
  EXPECT_TRUE(second_watcher.ReadUntil(5));

  v1::DetachTargetRequest detach;
  detach.set_name(target.name());
  detach.set_session("one");
  v1::DetachTargetResponse detached;
  ASSERT_TRUE(
      Call(*client_.targets, &v1::TargetService::Stub::DetachTarget, detach, detached).ok());
  EXPECT_FALSE(detached.detached());
  EXPECT_TRUE(Traced());
  detach.set_session("two");
  ASSERT_TRUE(Call(*second.targets, &v1::TargetService::Stub::DetachTarget, detach, detached).ok());
  EXPECT_TRUE(detached.detached());
  EXPECT_FALSE(Traced());
}

TEST_F(StreamingTest, SessionEndsWithItsStream) {
  const v1::Target target = Attach(client_, victim_->pid(), "s");
  Create(client_, target, {Tick()}, "s");
  v1::WatchEventsRequest request;
  request.set_end_session("s");
  {
    Watcher watcher(client_, request);
    ASSERT_TRUE(watcher.subscribed());
    EXPECT_TRUE(Traced());
  }
  EXPECT_TRUE(Eventually([&] { return !Traced(); }));
  victim_->Say("3");
  EXPECT_EQ(victim_->ReadLine(), "4");
}

TEST_F(StreamingTest, SessionEndsWithItsConnection) {
  auto leaver = std::make_unique<Client>(daemon_.Connect());
  const v1::Target target = Attach(*leaver, victim_->pid(), "s");
  v1::WatchEventsRequest request;
  request.set_end_session("s");
  auto watcher = std::make_unique<Watcher>(*leaver, request);
  ASSERT_TRUE(watcher->subscribed());
  watcher.reset();
  leaver.reset();
  EXPECT_TRUE(Eventually([&] { return !Traced(); }));
}

// A client that does not read: the queue is bounded, the loss is told, nothing is unaccounted for.
TEST_F(StreamingTest, SlowClientLosesAndIsTold) {
  constexpr uint64_t kHits = 40'000;
  const v1::Target target = Attach(client_, victim_->pid());
  Create(client_, target, {Tick(" n=$arg1 text=+0($arg2):string")});
  v1::WatchEventsRequest request;
  request.set_queue_bytes(64 << 10);
  Watcher watcher(client_, request);
  ASSERT_TRUE(watcher.subscribed());
  const long before = ProcNumber(daemon_.process().pid(), "VmRSS");
  victim_->Say(std::to_string(kHits));
  EXPECT_EQ(victim_->ReadLine(), std::to_string(kHits + 1));
  const long after = ProcNumber(daemon_.process().pid(), "VmRSS");
  if (!kHasSanitizer) {
    EXPECT_LT(after - before, 16 << 10) << "KiB";
  }
  ASSERT_TRUE(watcher.ReadUntil(kHits));
  EXPECT_EQ(watcher.hits() + watcher.lost(), kHits);
  EXPECT_GT(watcher.lost(), 0u);
}

TEST_F(StreamingTest, ExitOfTheTargetIsToldInStream) {
  const v1::Target target = Attach(client_, victim_->pid());
  Create(client_, target, {Tick()});
  Watcher watcher(client_, {});
  victim_->Say("1");
  ASSERT_TRUE(watcher.ReadUntil(1));
  victim_->Signal(SIGKILL);
  EXPECT_TRUE(watcher.ReadUntilEvent([&](const v1::Event& event) {
    return event.target_change().change() == v1::TargetChange::CHANGE_EXITED &&
           event.target_change().target() == target.name() &&
           event.target_change().wait_status() == SIGKILL;
  }));
}

TEST_F(StreamingTest, QueueAboveTheLimitIsRefused) {
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_queue_bytes(uint64_t{1} << 40);
  v1::WatchEventsResponse response;
  auto reader = client_.events->WatchEvents(&context, request);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(ReasonOf(reader->Finish()), "QUEUE_TOO_LARGE");
}

}  // namespace
}  // namespace probed::daemon
