#pragma once
// Nanoseconds as google.protobuf.Duration. Pure.

#include <cstdint>

#include "google/protobuf/duration.pb.h"

namespace probed::daemon {

inline google::protobuf::Duration DurationOfNanoseconds(uint64_t nanoseconds) {
  constexpr uint64_t kSecond = 1'000'000'000;
  google::protobuf::Duration duration;
  duration.set_seconds(static_cast<int64_t>(nanoseconds / kSecond));
  duration.set_nanos(static_cast<int32_t>(nanoseconds % kSecond));
  return duration;
}

}  // namespace probed::daemon
