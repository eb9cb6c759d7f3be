// --format trace: what the `trace` file of ftrace would show.

#include <vector>

#include "client/event_writer.h"
#include "engine/lang/print.h"

namespace probed::client {
namespace {

class TraceWriter : public EventWriter {
 public:
  void AppendHit(const v1::Event& event, const KnownSchema& known, std::string& out) override {
    const v1::Hit& hit = event.hit();
    line_.comm = hit.comm();
    line_.tid = hit.tid();
    line_.cpu = hit.cpu();
    line_.monotonic_ns = event.monotonic_ns();
    line_.event = known.schema.event;
    line_.kind = known.schema.kind;
    line_.ip = hit.ip();
    line_.function = hit.function();
    ConvertValues(hit, known.schema, values_);
    out += lang::FormatTraceLine(line_, known.schema, values_);
    out += '\n';
  }
  void AppendLoss(const v1::Event&, std::string&) override {}
  void AppendTargetChange(const v1::Event&, std::string&) override {}

 private:
  lang::TraceLine line_;             // kept between hits for its memory
  std::vector<lang::Value> values_;  // the same
};

}  // namespace

std::unique_ptr<EventWriter> MakeTraceWriter() {
  return std::make_unique<TraceWriter>();
}

}  // namespace probed::client
