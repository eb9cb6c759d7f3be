#pragma once
// Events to the API. Pure; written to be fast, because every hit passes here.

#include <vector>

#include "engine/event/event.h"
#include "engine/event/packed_hits.h"
#include "engine/lang/value.h"
#include "probed/v1/events.pb.h"

namespace probed::daemon {

void ToProto(const lang::Value& value, v1::Value* out);

// A payload that does not decode (what a target can write is hostile) gives a hit whose values are
// all faults: one wrong record must not end a stream.
void ToProto(const event::HitView& hit, v1::Event* out);
void ToProto(const event::LossNotice& loss, v1::Event* out);
void ToProto(const event::UnwoundNotice& unwound, v1::Event* out);
void ToProto(const event::TargetNotice& notice, v1::Event* out);

}  // namespace probed::daemon
