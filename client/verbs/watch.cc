// probectl watch: the stream of events of probes that others defined.

#include <fmt/format.h>

#include <memory>

#include "client/stop_watch.h"
#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/stream_output.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct WatchOptions {
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

ExitCode Watch(const WatchOptions& options, Api& api, Signals& signals, Talk& talk) {
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
  talk.Note(fmt::format("{} events, {} lost", pump.hits(), pump.lost()));
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
  verb->add_option("--target", options->targets,
                   "Only these targets (targets/PID-START); ends when they do")
      ->type_name("NAME");
  verb->add_option("--probe", options->probes, "Only these probes (targets/PID-START/probes/ID)")
      ->type_name("NAME");
  verb->add_option("--queue-bytes", options->queue_bytes,
                   "Bytes that the daemon queues for us before it drops (33554432)")
      ->type_name("BYTES");
  verb->add_flag("--drop-newest", options->drop_newest,
                 "When the queue is full drop new events instead of the oldest");
  AddStreamOptions(*verb, options->stream);
}

}  // namespace probed::client
