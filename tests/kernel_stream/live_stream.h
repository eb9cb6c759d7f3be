#pragma once
// A stream on an instance of the test's own, with a subscriber that has room for everything.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/drainer.h"
#include "engine/kernel/stream.h"
#include "engine/lang/value.h"
#include "tests/kernel_stream/own_instance.h"

namespace probed::kernel::testing {

class LiveStream {
 public:
  // `around` calls what opens the stream of the instance, where it wants to.
  using Around = std::function<void(const OwnInstance&, const std::function<void()>& open)>;
  // Null: there is nothing to test on.
  static std::unique_ptr<LiveStream> Open(const std::string& name, const Around& around = {});

  OwnInstance& instance() { return instance_; }
  Stream& stream() { return *stream_; }
  event::Drainer& drainer() { return drainer_; }

  // "GROUP/EVENT" from now on is `probe`.
  event::SchemaPtr Add(const std::string& event, event::ProbeId probe);
  // Everything so far.
  std::vector<event::Item> Take();
  std::vector<event::HitRecord> TakeHits();

 private:
  explicit LiveStream(OwnInstance instance)
      : instance_(std::move(instance)), events_(hub_.Subscribe(Options())) {}
  static event::SubscribeOptions Options() {
    event::SubscribeOptions options;
    options.max_queued_bytes = 1u << 30;
    return options;
  }

  OwnInstance instance_;
  event::Hub hub_;
  std::unique_ptr<event::Subscription> events_;
  event::Drainer drainer_{hub_};
  std::unique_ptr<Stream> stream_;
};

// By name; a field that is not there fails the test.
lang::Scalar ValueOf(const event::HitRecord& hit, const std::string& field);
std::string TextOf(const event::HitRecord& hit, const std::string& field);
uint64_t NumberOf(const event::HitRecord& hit, const std::string& field);

}  // namespace probed::kernel::testing
