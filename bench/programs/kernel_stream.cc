// Events of the kernel's ring, decoded and streamed to a subscriber in this process, for a hot loop
// of system calls with their tracepoint on. Prints one JSON object.
//   bench_kernel_stream INSTANCE_DIRECTORY SECONDS

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "engine/event/drainer.h"
#include "engine/kernel/stream.h"

namespace {

using namespace probed;
using std::chrono::steady_clock;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text << std::flush;
}

// A program of its own, so that it competes for the CPUs as any other.
pid_t StartLoop() {
  const pid_t child = fork();
  if (child != 0) return child;
  for (uint64_t i = 0;; ++i)
    syscall(SYS_getpriority, 0, i);
}

struct Received {
  uint64_t hits = 0;
  uint64_t lost = 0;
};

void Take(event::Subscription& events, Received& received) {
  for (const event::Batch& batch : events.NextBatches(8 << 20, std::chrono::milliseconds(50))) {
    if (const auto* hits = std::get_if<event::PackedHits>(&batch)) {
      hits->ForEach([&](const event::HitView&) { ++received.hits; });
    } else if (const auto* loss = std::get_if<event::LossNotice>(&batch)) {
      received.lost += loss->lost;
    }
  }
}

int Run(const std::string& instance, int seconds) {
  event::Hub hub;
  event::Drainer drainer(hub);
  event::SubscribeOptions options;
  options.max_queued_bytes = 512u << 20;
  auto events = hub.Subscribe(options);
  auto stream = kernel::Stream::Open(instance, drainer);
  if (!stream.ok()) {
    fprintf(stderr, "%s\n", stream.error().ToString().c_str());
    return 1;
  }
  const std::string event = instance + "/events/syscalls/sys_enter_getpriority";
  auto schema = (*stream)->Add("syscalls", ReadText(event + "/format"), 1);
  if (!schema.ok()) return 1;
  const pid_t loop = StartLoop();
  Write(event + "/enable", "1");
  Received received;
  const auto begin = steady_clock::now();
  while (steady_clock::now() - begin < std::chrono::seconds(seconds))
    Take(*events, received);
  Write(event + "/enable", "0");
  const std::chrono::duration<double> elapsed = steady_clock::now() - begin;
  kill(loop, SIGKILL);
  waitpid(loop, nullptr, 0);
  (*stream)->Flush();
  Received last = received;
  for (int idle = 0; idle < 3; last = received) {
    Take(*events, received);
    if (received.hits == last.hits) ++idle;
  }
  const auto counts = (*stream)->CountsOf(1);
  printf(
      "{\"seconds\": %f, \"received\": %lu, \"told_lost\": %lu, \"recorded\": %lu, \"lost\": "
      "%lu}\n",
      elapsed.count(), received.hits, received.lost, counts.recorded, counts.lost);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return Run(argv[1], atoi(argv[2]));
}
