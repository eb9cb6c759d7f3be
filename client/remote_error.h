#pragma once
// A refused call: what the daemon's rich status says, as plain values.

#include <tl/expected.hpp>
#include <vector>

#include "base/error.h"
#include "probed/v1/common.pb.h"

namespace grpc {
class Status;
}

namespace probed::client {

struct RemoteError {
  Error error;
  std::vector<v1::LineVerdict> verdicts;  // one per refused definition line
};

// A response or the reason why there is none.
template <class T>
using Reply = tl::expected<T, RemoteError>;

// `status` must not be OK. A status without ErrorInfo (from gRPC itself) gets the code's name as
// its reason.
RemoteError FromStatus(const grpc::Status& status);

}  // namespace probed::client
