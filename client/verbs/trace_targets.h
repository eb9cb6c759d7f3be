#pragma once
// Probes, a stream, and their end: what `attach` and `trace` have in common.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/api.h"
#include "client/exit_code.h"
#include "client/signals.h"
#include "client/talk.h"
#include "client/verbs/options.h"
#include "client/verbs/process_options.h"

namespace probed::client {

struct TraceOptions {
  ProcessOptions processes;
  bool follow = false;
  DefinitionOptions definitions;
  StreamOptions stream;

  bool has_definitions() const { return definitions.are_given(); }
};

// Attaches to every pid by `attach`. kOk: to all; kPartial: to some; else the exit code of the
// first failure.
ExitCode AttachAll(const TraceOptions& options, const std::vector<int>& pids, Talk& talk,
                   const std::function<Reply<v1::Target>(const v1::AttachTargetRequest&)>& attach);

// Until the targets end, an interrupt, or what the stream options say. Without a selection of
// processes it is the kernel alone that is traced.
ExitCode TraceTargets(const TraceOptions& options,
                      const std::optional<v1::FindProcessesRequest>& selection,
                      const std::vector<std::string>& lines, Api& api, Signals& signals,
                      Talk& talk);

}  // namespace probed::client
