#pragma once
// Who reads the rings of a tracefs instance: as pages (page_reader.h) or, where these are refused,
// as lines of text (pipe_reader.h).

#include <cstdint>
#include <string>

#include "engine/ring/record_reader.h"

namespace probed::kernel {

class EventReader : public ring::RecordReader {
 public:
  virtual uint32_t cpu_number(uint32_t index) const = 0;  // of RawRecord::cpu
  // Events that were overwritten unread. Thread-safe.
  virtual uint64_t lost() const = 0;
  // What the kernel calls the event with this id. Thread-safe. EVENT_NAME_TAKEN: where lines have
  // names only, another event has it.
  virtual Status Learn(uint16_t id, const std::string& event) = 0;
  virtual void Forget(uint16_t id) = 0;
};

}  // namespace probed::kernel
