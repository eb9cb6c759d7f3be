#include "engine/kernel/features.h"

#include <fmt/format.h>

namespace probed::kernel {
namespace {

struct Missing {
  std::string_view reason, what, option;
};

Missing MissingOf(LineKind kind) {
  switch (kind) {
    case LineKind::kKprobe:
      return {"NO_KPROBE_EVENTS", "kprobe events", "CONFIG_KPROBE_EVENTS"};
    case LineKind::kUprobe:
      return {"NO_UPROBE_EVENTS", "uprobe events", "CONFIG_UPROBE_EVENTS"};
    case LineKind::kFprobe:
      return {"NO_FPROBE_EVENTS", "function probe events (f:)", "CONFIG_FPROBE_EVENTS, Linux 6.5"};
    case LineKind::kTracepoint:
      return {"NO_TRACEPOINT_EVENTS", "tracepoint probe events (t:)",
              "CONFIG_FPROBE_EVENTS, Linux 6.5"};
    case LineKind::kEprobe:
      return {"NO_EVENT_PROBES", "event probes (e:)", "CONFIG_PROBE_EVENTS, Linux 5.15"};
    case LineKind::kSynthetic:
      return {"NO_SYNTHETIC_EVENTS", "synthetic events (s:)", "CONFIG_SYNTH_EVENTS, Linux 4.17"};
  }
  return {};
}

}  // namespace

bool Features::Has(LineKind kind) const {
  switch (kind) {
    case LineKind::kKprobe:
      return kprobes;
    case LineKind::kUprobe:
      return uprobes;
    case LineKind::kFprobe:
      return fprobes;
    case LineKind::kTracepoint:
      return tracepoint_probes;
    case LineKind::kEprobe:
      return eprobes;
    case LineKind::kSynthetic:
      return synthetic;
  }
  return false;
}

// README names a form where its code is built in (kernel/trace/trace.c, readme_msg).
Features ReadFeatures(const Tracefs& tracefs) {
  const auto readme = tracefs.Read("README");
  const std::string text = readme.ok() ? *readme : "";
  const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  Features features;
  features.kprobes = tracefs.Has("kprobe_events");
  features.uprobes = tracefs.Has("uprobe_events");
  features.fprobes = says("f[:[<group>/][<event>]]") || says("f[maxactive]");
  features.tracepoint_probes = says("t[:[<group>/][<event>]]");
  // Its line is there with uprobes alone, too, where its code is not.
  features.eprobes = says("e[:[<group>/][<event>]]");
  features.synthetic = tracefs.Has("synthetic_events");
  features.btf_arguments = says("$arg*") || says("[->field");
  features.histograms = says("hist trigger");
  return features;
}

Error NotInThisKernel(LineKind kind) {
  const Missing missing = MissingOf(kind);
  return Error{
      .code = ErrorCode::kFailedPrecondition,
      .reason = std::string(missing.reason),
      .message = fmt::format("this kernel has no {}", missing.what),
      .hint = fmt::format("a kernel with {}; probes on user code need none of it", missing.option),
      .metadata = {}};
}

}  // namespace probed::kernel
