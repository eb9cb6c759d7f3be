// The stream alone: the daemon's EventStream, fed at a steady pace, and a client in another
// process. usage: stream RATE SECONDS CLIENT_PAUSE_US The client sleeps CLIENT_PAUSE_US after every
// message. Prints one JSON object.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "daemon/services/event_stream.h"
#include "engine/event/hub.h"

namespace probed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kQueueBytes = 32u << 20;

struct Load {
  uint64_t rate = 0;  // events a second
  double seconds = 0;
  std::chrono::microseconds client_pause{0};
  uint64_t count() const { return static_cast<uint64_t>(static_cast<double>(rate) * seconds); }
};

struct Received {
  uint64_t hits = 0;
  uint64_t lost = 0;
  uint64_t out_of_order = 0;
};

// The record of `p:bench/hot ... number=%di:u64 text=+0(%si):string`.
event::HitRecord ExampleHit() {
  auto schema = std::make_shared<lang::EventSchema>();
  schema->group = "bench";
  schema->event = "hot";
  schema->fields = {{"number", {lang::BaseType::kU64}, 0, 8},
                    {"text", {lang::BaseType::kString}, 8, 8}};
  schema->fixed_size = 16;
  const std::string text = "hello world";
  const uint32_t slot[] = {16, static_cast<uint32_t>(text.size())};
  event::HitRecord hit;
  hit.probe = 1;
  hit.schema = std::move(schema);
  hit.payload.resize(16 + text.size());
  std::memcpy(hit.payload.data() + 8, slot, sizeof slot);
  std::memcpy(hit.payload.data() + 16, text.data(), text.size());
  return hit;
}

// Publishes in slices of a millisecond, as a clock would.
void Produce(event::Hub& hub, const Load& load) {
  const event::HitRecord example = ExampleHit();
  const auto start = Clock::now();
  for (uint64_t sent = 0; sent < load.count();) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    const auto due = static_cast<uint64_t>(elapsed.count() * static_cast<double>(load.rate));
    for (; sent < std::min(due, load.count()); ++sent) {
      event::HitRecord hit = example;
      hit.monotonic_ns = sent + 1;
      std::memcpy(hit.payload.data(), &sent, sizeof sent);
      hub.Publish(std::move(hit));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  hub.Close();
}

class Service final : public v1::EventService::Service {
 public:
  Service(engine::Engine& engine, event::Hub& hub)
      : sessions_({}), context_{engine, authorizer_, sessions_, limits_}, hub_(hub) {}

  grpc::Status WatchEvents(grpc::ServerContext* call, const v1::WatchEventsRequest*,
                           grpc::ServerWriter<v1::WatchEventsResponse>* writer) override {
    daemon::EventFilter filter({}, [](event::TargetId) { return true; });
    event::SubscribeOptions options;
    options.max_queued_bytes = kQueueBytes;
    options.wants = [&filter](const event::Item& item) { return filter.Wants(item); };
    const auto subscription = hub_.Subscribe(std::move(options));
    daemon::EventStream stream(context_, filter, *subscription, *writer);
    if (!stream.Greet()) return grpc::Status::OK;
    watched_.store(true);
    stream.Run(*call);
    return grpc::Status::OK;
  }

  void WaitUntilWatched() const {
    while (!watched_.load())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  daemon::Authorizer authorizer_;
  daemon::Sessions sessions_;
  daemon::Limits limits_;
  daemon::ServiceContext context_;
  event::Hub& hub_;
  std::atomic<bool> watched_ = false;
};

Received Read(const std::string& address, const Load& load) {
  auto stub =
      v1::EventService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext call;
  call.set_wait_for_ready(true);
  auto reader = stub->WatchEvents(&call, {});
  Received received;
  uint64_t last = 0;
  v1::WatchEventsResponse batch;
  while (reader->Read(&batch)) {
    for (const v1::Event& event : batch.events()) {
      if (event.has_loss()) received.lost += event.loss().lost();
      if (!event.has_hit()) continue;
      ++received.hits;
      received.out_of_order += event.sequence() <= last;
      last = event.sequence();
    }
    std::this_thread::sleep_for(load.client_pause);
  }
  return received;
}

int RunClient(const std::string& address, const Load& load, int output) {
  const Received received = Read(address, load);
  const bool written = ::write(output, &received, sizeof received) == sizeof received;
  return written ? 0 : 1;
}

long MaxResidentKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

int Serve(const std::string& address, const Load& load, int input) {
  auto engine = engine::Engine::Create({});
  if (!engine.ok()) return 1;
  event::Hub hub;
  Service service(**engine, hub);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  service.WaitUntilWatched();
  const long before_kib = MaxResidentKib();
  const auto start = Clock::now();
  Produce(hub, load);
  Received received;
  if (::read(input, &received, sizeof received) != sizeof received) return 1;
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  std::printf(
      "{\"published\": %lu, \"received\": %lu, \"lost\": %lu, \"out_of_order\": %lu, "
      "\"seconds\": %.3f, \"grown_kib\": %ld}\n",
      hub.published(), received.hits, received.lost, received.out_of_order, elapsed.count(),
      MaxResidentKib() - before_kib);
  return 0;
}

}  // namespace
}  // namespace probed

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const probed::Load load{std::strtoull(argv[1], nullptr, 10), std::atof(argv[2]),
                          std::chrono::microseconds(std::atol(argv[3]))};
  const std::string address = "unix-abstract:probed-bench-" + std::to_string(::getpid());
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  // Before gRPC has any thread.
  const pid_t client = ::fork();
  if (client < 0) return 1;
  if (client == 0) {
    ::alarm(120);
    ::_exit(probed::RunClient(address, load, ends[1]));
  }
  ::close(ends[1]);
  const int result = probed::Serve(address, load, ends[0]);
  int status = 0;
  ::waitpid(client, &status, 0);
  return result;
}
