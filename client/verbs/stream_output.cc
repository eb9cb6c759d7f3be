#include "client/verbs/stream_output.h"

#include <utility>

namespace probed::client {

Result<StreamOutput> OpenStreamOutput(const StreamOptions& options) {
  PROBED_TRY(Output output, Output::Open(options.output));
  const Controls controls = output.is_terminal() ? Controls::kEscaped : Controls::kAsTheyAre;
  auto writer = options.format == Format::kJson ? MakeJsonWriter() : MakeTraceWriter(controls);
  return StreamOutput{std::move(output), std::move(writer)};
}

bool CheckWritten(const Output& output, Talk& talk) {
  if (output.error_number() == 0) return true;
  talk.Fail(ErrnoError(output.error_number(), "write of events"));
  return false;
}

}  // namespace probed::client
