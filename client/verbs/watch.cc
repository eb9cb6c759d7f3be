// probectl watch: the stream of events of probes that others defined.

#include <fmt/format.h>

#include <memory>

#include "base/plural.h"
#include "client/stop_watch.h"
#include "client/verbs/connect.h"
#include "client/verbs/find_target.h"
#include "client/verbs/options.h"
#include "client/verbs/stream_output.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct WatchOptions {
  std::vector<int> pids;
  std::vector<std::string> targets;
  std::vector<std::string> probes;
  bool drop_newest = false;
  uint64_t queue_bytes = 0;
  StreamOptions stream;
};

v1::WatchEventsRequest RequestOf(const WatchOptions& options) {
  v1::WatchEventsRequest request;
  request.mutable_targets()->Assign(options.targets.begin(), options.targets.end());
  request.mutable_probes()->Assign(options.probes.begin(), options.probes.end());
  request.set_queue_bytes(options.queue_bytes);
  request.set_drop_policy(options.drop_newest ? v1::WatchEventsRequest::DROP_POLICY_NEWEST
                                              : v1::WatchEventsRequest::DROP_POLICY_OLDEST);
  request.set_greet(true);
  request.set_packed_hits(true);
  return request;
}

// Pids and event names as the resource names that the API takes.
Reply<void> Resolve(WatchOptions& options, Api& api) {
  for (int pid : options.pids) {
    auto target = FindTarget(api, {.pid = pid, .name = {}});
    if (!target) return tl::unexpected(std::move(target).error());
    options.targets.push_back(*target);
  }
  if (options.probes.empty()) return {};
  auto probes = SelectProbes(api, "targets/-", options.probes);
  if (!probes) return tl::unexpected(std::move(probes).error());
  options.probes = *std::move(probes);
  return {};
}

ExitCode Watch(WatchOptions options, Api& api, Signals& signals, Talk& talk) {
  if (auto resolved = Resolve(options, api); !resolved) return talk.Fail(resolved.error());
  auto output = OpenStreamOutput(options.stream);
  if (!output.ok()) return talk.Fail(output.error());
  EventPump::Options pump_options;
  pump_options.count = options.stream.count;
  pump_options.targets.insert(options.targets.begin(), options.targets.end());
  EventPump pump(api.WatchEvents(RequestOf(options)), std::move(pump_options), *output->writer,
                 output->output, talk);
  StopOptions stop;
  stop.duration_seconds = options.stream.duration_seconds;
  StopReason reason = WaitForStop(pump, signals, talk, stop);
  talk.ClearStatus();
  signals.LetInterruptsEndUs();
  auto end = pump.Stop();
  if (!end) return talk.Fail(end.error());
  talk.Note(fmt::format("{}, {} lost", Plural(pump.hits(), "event"), pump.lost()));
  return CheckWritten(output->output, talk) ? ExitCodeOf(reason, talk) : ExitCode::kFailure;
}

int Connected(const WatchOptions& options, const Invocation& invocation, Talk& talk) {
  Signals signals;
  return WithDaemon(invocation, talk, [&](Api& api) { return Watch(options, api, signals, talk); });
}

}  // namespace

void AddWatch(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<WatchOptions>();
  CLI::App* verb =
      AddVerb(app, invocation, "watch",
              "Print the events of probes that are already there; changes nothing.",
              [options, &invocation](Talk& talk) { return Connected(*options, invocation, talk); });
  AddPidsOption(*verb, options->pids,
                "Only these attached processes, separated by commas; ends when they do");
  verb->add_option("--target", options->targets, "The same by resource name: targets/PID-START")
      ->type_name("NAME");
  verb->add_option("--probe", options->probes,
                   "Only these probes: GROUP/EVENT, EVENT, GROUP/ or a resource name")
      ->type_name("NAME");
  verb->add_option("--queue-bytes", options->queue_bytes,
                   "Bytes that the daemon queues for us before it drops (33554432)")
      ->check(Whole())
      ->type_name("BYTES");
  verb->add_flag("--drop-newest", options->drop_newest,
                 "When the queue is full drop new events instead of the oldest");
  AddStreamOptions(*verb, options->stream);
}

}  // namespace probed::client
