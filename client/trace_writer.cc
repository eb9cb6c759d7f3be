// --format trace: what the `trace` file of ftrace would show.

#include <cstring>

#include "client/event_writer.h"
#include "client/printable.h"
#include "engine/lang/print.h"

namespace probed::client {
namespace {

class TraceWriter : public EventWriter {
 public:
  explicit TraceWriter(Controls controls) : controls_(controls) {}

  void AppendHit(const Hit& hit, const KnownSchema& known, std::string& out) override {
    line_.comm.assign(hit.head.comm, strnlen(hit.head.comm, sizeof(hit.head.comm)));
    line_.tid = hit.head.tid;
    line_.cpu = hit.head.cpu;
    line_.flags = lang::TraceFlags(hit.head.flags, hit.head.preempt_count);
    line_.monotonic_ns = hit.head.monotonic_ns;
    line_.event = known.schema.event;
    line_.kind = known.schema.kind;
    line_.ip = hit.head.ip;
    line_.function = hit.head.function;
    const size_t begin = out.size();
    lang::AppendTraceLine(line_, known.schema, hit.values, out);
    if (controls_ == Controls::kEscaped) MakePrintable(out, begin);
    out += '\n';
  }
  void AppendLoss(const v1::Event&, std::string&) override {}
  void AppendUnwound(const v1::Event&, const KnownSchema&, std::string&) override {}
  void AppendTargetChange(const v1::Event&, std::string&) override {}

 private:
  const Controls controls_;
  lang::TraceLine line_;  // kept between hits for its memory
};

}  // namespace

std::unique_ptr<EventWriter> MakeTraceWriter(Controls controls) {
  return std::make_unique<TraceWriter>(controls);
}

}  // namespace probed::client
