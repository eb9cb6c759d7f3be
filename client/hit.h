#pragma once
// One hit as the writers take it, whichever way the daemon sent it.

#include <vector>

#include "client/schema_table.h"
#include "engine/lang/packed_hit.h"
#include "engine/lang/value.h"
#include "probed/v1/events.pb.h"

namespace probed::client {

struct Hit {
  lang::PackedHit head;
  std::vector<lang::Value> values;  // one for each field of the schema
};

// Both replace `out`, keeping its memory. Values that are missing or do not decode become faults.
void FromMessage(const v1::Event& event, const lang::EventSchema& schema, Hit& out);
void FromPacked(const lang::PackedHitReader::Hit& packed, const lang::EventSchema& schema,
                Hit& out);

}  // namespace probed::client
