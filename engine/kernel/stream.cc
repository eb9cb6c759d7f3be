#include "engine/kernel/stream.h"

#include <utility>

namespace probed::kernel {

class Stream::Source {};

Stream::Stream(event::Drainer& drainer, std::shared_ptr<Source> source)
    : drainer_(drainer), source_(std::move(source)) {}

Stream::~Stream() = default;

Result<std::unique_ptr<Stream>> Stream::Open(const std::string& /*instance_directory*/,
                                             event::Drainer& drainer) {
  return std::unique_ptr<Stream>(new Stream(drainer, std::make_shared<Source>()));
}

Result<event::SchemaPtr> Stream::Add(const std::string& group, const std::string& format,
                                     event::ProbeId /*probe*/) {
  auto schema = std::make_shared<lang::EventSchema>();
  schema->group = group;
  const std::string name = "name: ";
  if (format.starts_with(name))
    schema->event = format.substr(name.size(), format.find('\n') - name.size());
  return event::SchemaPtr(std::move(schema));
}

void Stream::Remove(event::ProbeId /*probe*/) {}

Stream::Counts Stream::CountsOf(event::ProbeId /*probe*/) const {
  return {};
}

void Stream::Flush() {
  drainer_.Flush();
}

}  // namespace probed::kernel
