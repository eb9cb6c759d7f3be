#include "engine/probe/image_stop.h"

#include <fmt/format.h>

#include "engine/probe/stop_deadline.h"

namespace probed::probe {
namespace {

Status CheckImage(const ProcessState& state, uint64_t image) {
  if (state.image == image) return {};
  return Error{.code = ErrorCode::kAborted,
               .reason = "PROGRAM_REPLACED",
               .message = fmt::format("process {} has executed a new program", state.id.pid),
               .hint = "",
               .metadata = {}};
}

}  // namespace

tracee::InOneStop StopOfImage(tracee::Tracer& tracer, ProcessState& state, uint64_t image) {
  return [&tracer, &state, image](const std::function<void(tracee::Stopped&)>& work) {
    auto work_on_it = [&](tracee::Stopped& stopped) -> Status {
      PROBED_RETURN_IF_ERROR(CheckImage(state, image));
      work(stopped);
      return CheckImage(state, image);
    };
    return tracer.WithOneStopped(state.process, kStopDeadline, work_on_it);
  };
}

}  // namespace probed::probe
