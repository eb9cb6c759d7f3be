#pragma once
// The output of a streaming verb, as its options ask.

#include <memory>

#include "client/event_writer.h"
#include "client/output.h"
#include "client/verbs/options.h"

namespace probed::client {

struct StreamOutput {
  Output output;
  std::unique_ptr<EventWriter> writer;
};

Result<StreamOutput> OpenStreamOutput(const StreamOptions& options);

// Reports a failed write (a full disk); true when all data was written.
bool CheckWritten(const Output& output, Talk& talk);

}  // namespace probed::client
