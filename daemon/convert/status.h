#pragma once
// Errors of the engine as rich gRPC statuses: google.rpc.Status in the trailer
// grpc-status-details-bin with ErrorInfo{reason, domain "probed", metadata} always, Help for a
// hint, BadRequest and LineVerdicts for refused definitions. Pure.

#include <string>
#include <vector>

#include <grpcpp/support/status.h>

#include "base/error.h"
#include "engine/engine.h"
#include "probed/v1/common.pb.h"

namespace probed::daemon {

grpc::StatusCode ToGrpcCode(ErrorCode code);
grpc::Status ToStatus(const Error& error);

// What a line's refusal that did not come from the language would have been as an errno.
int ErrnoOf(ErrorCode code);

v1::LineVerdict ToVerdict(const engine::LineError& error, const std::string& line);

// One refusal that is not about one line of several.
grpc::Status Refused(const engine::LineError& error);

// `lines` are the request's. Clients take 8 KiB of trailers by default, so only the first verdicts
// that fit are attached; metadata "refused" and "shown" count both.
grpc::Status RefusedLines(const std::vector<engine::LineError>& errors,
                          const std::vector<std::string>& lines);

}  // namespace probed::daemon
