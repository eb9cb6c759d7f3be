#pragma once
// The schemas that a stream announced, in the form the printers take. Not thread-safe.

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/lang/schema.h"
#include "probed/v1/events.pb.h"

namespace probed::client {

struct KnownSchema {
  std::string probe;  // resource name
  lang::EventSchema schema;
  // Ready-made pieces of JSON: everything of a hit that does not change, and "name": per field.
  std::string json_head;
  std::vector<std::string> json_keys;
};

class SchemaTable {
 public:
  void Add(const v1::EventSchema& schema);
  // Null when the stream never announced it.
  const KnownSchema* Find(uint64_t id) const;

 private:
  std::unordered_map<uint64_t, KnownSchema> schemas_;
};

lang::ArgType TypeOf(const v1::FieldType& type);

}  // namespace probed::client
