// From rings to a client in three processes: a target that writes records at a steady pace, the
// daemon's own drain, hub and event stream, and a client.
//   stream RATE SECONDS CLIENT CLIENT_PAUSE_US
// CLIENT: `messages` or `packed` (one that reads and checks) or the path of a probectl, which
// watches into /dev/null. The client sleeps CLIENT_PAUSE_US after every message. Prints one JSON
// object; processor time is in nanoseconds for each event.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "daemon/boot_definitions.h"
#include "daemon/services/event_stream.h"
#include "engine/event/drainer.h"
#include "engine/lang/packed_hit.h"
#include "engine/ring/reader.h"
#include "tests/ring/producer.h"

namespace probed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kQueueBytes = 32u << 20;
constexpr ring::Geometry kGeometry{.cpu_count = 2, .ring_bytes = 64u << 20};

struct Load {
  uint64_t rate = 0;  // events a second
  double seconds = 0;
  std::string client;
  std::chrono::microseconds client_pause{0};
  uint64_t count() const { return static_cast<uint64_t>(static_cast<double>(rate) * seconds); }
};

struct Received {
  uint64_t hits = 0;
  uint64_t lost = 0;
  uint64_t out_of_order = 0;
};

// The record of `p:bench/hot ... number=%di:u64 text=+0(%si):string`.
struct Payload {
  uint64_t number = 0;
  uint32_t offset = 16;
  uint32_t length = 11;
  char text[11] = {'h', 'e', 'l', 'l', 'o', ' ', 'w', 'o', 'r', 'l', 'd'};
};
constexpr size_t kPayloadBytes = 27;  // without what aligns the struct

// The target: writes in slices of a millisecond, as a clock would. In turn on either CPU.
void Produce(ring::Producer& producer, const Load& load) {
  const auto start = Clock::now();
  Payload payload;
  for (uint64_t& sent = payload.number; sent < load.count();) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    const auto due = static_cast<uint64_t>(elapsed.count() * static_cast<double>(load.rate));
    for (; sent < std::min(due, load.count()); ++sent) {
      const auto cpu = static_cast<uint32_t>(sent / 4096 % kGeometry.cpu_count);
      producer.Record(cpu,
                      {.probe = 0,
                       .thread = 1,
                       .tsc = ring::ReadTsc(),
                       .payload = {reinterpret_cast<const std::byte*>(&payload), kPayloadBytes}});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class Rings final : public event::RingSource {
 public:
  Rings() {
    auto schema = std::make_shared<lang::EventSchema>();
    schema->group = "bench";
    schema->event = "hot";
    schema->fields = {{"number", {lang::BaseType::kU64}, 0, 8},
                      {"text", {lang::BaseType::kString}, 8, 8}};
    schema->fixed_size = 16;
    schema_ = std::move(schema);
  }

  ring::Producer& producer() { return producer_; }
  uint64_t lost() { return producer_.counters(0).lost; }

  ring::Reader& reader() override { return reader_; }
  void OnReadUpTo(uint64_t) override {}
  void Count(uint32_t) override {}
  bool Decode(const ring::RawRecord& record, event::RingHit& hit) override {
    hit.header.probe = 1;
    hit.header.pid = hit.header.tid = static_cast<int>(record.thread);
    hit.header.cpu = static_cast<uint16_t>(record.cpu);
    hit.header.ip = 0x401136;
    std::memcpy(hit.header.comm, "hot", 3);
    hit.payload = record.payload;
    hit.schema = schema_;
    return true;
  }
  void OnCorrupt(const Error& error) override {
    std::fprintf(stderr, "%s\n", error.ToString().c_str());
  }

 private:
  ring::SharedMapping control_{kGeometry.control_bytes()};
  ring::SharedMapping ring_{kGeometry.ring_area_bytes()};
  ring::Producer producer_{kGeometry, control_.bytes(), ring_.bytes()};
  ring::Reader reader_{kGeometry, control_.bytes(), ring_.bytes()};
  event::SchemaPtr schema_;
};

class Service final : public v1::EventService::Service {
 public:
  Service(engine::Engine& engine, event::Hub& hub)
      : sessions_({}), context_{engine, authorizer_, sessions_, limits_, boot_}, hub_(hub) {}

  grpc::Status WatchEvents(grpc::ServerContext* call, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::WatchEventsResponse>* writer) override {
    daemon::EventFilter filter({}, [](event::TargetId) { return true; });
    event::SubscribeOptions options;
    options.max_queued_bytes = kQueueBytes;
    options.wants_hit = [&filter](event::ProbeId probe, event::TargetId target) {
      return filter.WantsHit(probe, target);
    };
    const auto subscription = hub_.Subscribe(std::move(options));
    const auto form =
        request->packed_hits() ? daemon::HitForm::kPacked : daemon::HitForm::kMessages;
    daemon::EventStream stream(context_, filter, *subscription, *writer, form);
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
  const daemon::BootDefinitions boot_{{}};
  daemon::ServiceContext context_;
  event::Hub& hub_;
  std::atomic<bool> watched_ = false;
};

class Checker {
 public:
  void Take(const v1::Event& event) {
    if (event.has_loss()) received_.lost += event.loss().lost();
    if (event.has_hit()) TakeHit(event.sequence());
    if (!event.has_hit_block()) return;
    lang::PackedHitReader reader(std::as_bytes(std::span(event.hit_block().records())));
    while (const auto hit = reader.Next())
      TakeHit(hit->header.sequence);
  }
  const Received& received() const { return received_; }

 private:
  void TakeHit(uint64_t sequence) {
    ++received_.hits;
    received_.out_of_order += sequence <= last_;
    last_ = sequence;
  }

  Received received_;
  uint64_t last_ = 0;
};

Received Read(const std::string& address, const Load& load) {
  auto stub =
      v1::EventService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext call;
  call.set_wait_for_ready(true);
  v1::WatchEventsRequest request;
  request.set_packed_hits(load.client == "packed");
  auto reader = stub->WatchEvents(&call, request);
  Checker checker;
  v1::WatchEventsResponse batch;
  while (reader->Read(&batch)) {
    for (const v1::Event& event : batch.events())
      checker.Take(event);
    std::this_thread::sleep_for(load.client_pause);
  }
  return checker.received();
}

int RunClient(const std::string& address, const Load& load, int output) {
  ::alarm(120);
  if (load.client != "messages" && load.client != "packed") {
    ::execl(load.client.c_str(), load.client.c_str(), "watch", "--address", address.c_str(),
            "--output", "/dev/null", nullptr);
    return 1;
  }
  const Received received = Read(address, load);
  const bool written = ::write(output, &received, sizeof received) == sizeof received;
  return written ? 0 : 1;
}

long MaxResidentKib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

double SecondsOf(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <class Body>
pid_t Fork(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  if (child < 0) std::abort();
  return child;
}

// Processor time of the process that ended.
double Wait(pid_t child) {
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return SecondsOf(usage);
}

struct Processes {
  pid_t target = 0;
  pid_t client = 0;
  int begin = -1;     // closing it lets the target begin
  int received = -1;  // what the client tells
};

int Serve(const std::string& address, Rings& rings, const Load& load, const Processes& processes) {
  auto engine = engine::Engine::Create({});
  if (!engine.ok()) return 1;
  event::Hub hub;
  event::Drainer drainer(hub);
  Service service(**engine, hub);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  service.WaitUntilWatched();
  // Ours alone: the test holds the rings, the drain must not end them.
  const auto source = drainer.Add(std::shared_ptr<event::RingSource>(&rings, [](auto*) {}));
  const long before_kib = MaxResidentKib();
  const auto start = Clock::now();
  ::close(processes.begin);
  const double target_seconds = Wait(processes.target);
  drainer.Remove(source);
  hub.Close();
  Received received;
  if (::read(processes.received, &received, sizeof received) < 0) return 1;
  const double client_seconds = Wait(processes.client);
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto each = [&](double seconds) {
    return seconds * 1e9 / static_cast<double>(load.count());
  };
  std::printf(
      "{\"recorded\": %lu, \"ring_lost\": %lu, \"published\": %lu, \"received\": %lu, "
      "\"lost\": %lu, \"out_of_order\": %lu, \"seconds\": %.3f, \"grown_kib\": %ld, "
      "\"target_ns\": %.0f, \"daemon_ns\": %.0f, \"client_ns\": %.0f}\n",
      load.count(), rings.lost(), hub.published(), received.hits, received.lost,
      received.out_of_order, elapsed.count(), MaxResidentKib() - before_kib, each(target_seconds),
      each(SecondsOf(own)), each(client_seconds));
  return 0;
}

}  // namespace
}  // namespace probed

int main(int argc, char** argv) {
  using namespace probed;
  if (argc != 5) return 2;
  const Load load{std::strtoull(argv[1], nullptr, 10), std::atof(argv[2]), argv[3],
                  std::chrono::microseconds(std::atol(argv[4]))};
  const std::string socket = "/tmp/probed-bench-" + std::to_string(::getpid());
  const std::string address = "unix://" + socket;
  int begin[2], received[2];
  if (::pipe2(begin, O_CLOEXEC) != 0 || ::pipe2(received, O_CLOEXEC) != 0) return 1;
  Rings rings;
  // Both before gRPC has any thread.
  Processes processes{.begin = begin[1], .received = received[0]};
  processes.target = Fork([&] {
    char none;
    ::close(begin[1]);
    if (::read(begin[0], &none, 1) != 0) return 1;
    Produce(rings.producer(), load);
    return 0;
  });
  processes.client = Fork([&] {
    ::close(begin[1]);
    return RunClient(address, load, received[1]);
  });
  ::close(received[1]);
  const int result = Serve(address, rings, load, processes);
  ::unlink(socket.c_str());
  return result;
}
