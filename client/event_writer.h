#pragma once
// Turns what a stream says into text, appended to a string that the caller reuses. One class per
// format. Not thread-safe.

#include <memory>
#include <string>

#include "client/hit.h"
#include "client/schema_table.h"
#include "probed/v1/events.pb.h"

namespace probed::client {

class EventWriter {
 public:
  virtual ~EventWriter() = default;

  virtual void AppendHit(const Hit& hit, const KnownSchema& schema, std::string& out) = 0;
  // Formats without a place for these append nothing.
  virtual void AppendLoss(const v1::Event& event, std::string& out) = 0;
  virtual void AppendUnwound(const v1::Event& event, const KnownSchema& schema,
                             std::string& out) = 0;
  virtual void AppendTargetChange(const v1::Event& event, std::string& out) = 0;
};

// Whether what a program has in its strings may reach a terminal as it is.
enum class Controls : uint8_t { kAsTheyAre, kEscaped };

// ftrace's lines, byte for byte (unless controls are escaped); flags column ".....".
std::unique_ptr<EventWriter> MakeTraceWriter(Controls controls = Controls::kAsTheyAre);
// One JSON object a line; docs/man/probectl-watch.1.md describes the keys.
std::unique_ptr<EventWriter> MakeJsonWriter();

}  // namespace probed::client
