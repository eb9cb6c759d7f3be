#include "tests/kernel_stream/live_stream.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "engine/lang/payload.h"

namespace probed::kernel::testing {

std::unique_ptr<LiveStream> LiveStream::Open(const std::string& name, const Around& around) {
  auto instance = OwnInstance::Create(name);
  if (!instance) return nullptr;
  std::unique_ptr<LiveStream> live(new LiveStream(*std::move(instance)));
  const auto open = [&] {
    auto stream = Stream::Open(live->instance_.directory(), live->drainer_);
    if (stream.ok()) {
      live->stream_ = *std::move(stream);
    } else {
      EXPECT_EQ(stream.error().reason, "TSC_UNRELIABLE") << stream.error().ToString();
    }
  };
  around ? around(live->instance_, open) : open();
  if (!live->stream_) return nullptr;
  return live;
}

event::SchemaPtr LiveStream::Add(const std::string& event, event::ProbeId probe) {
  const std::string group = event.substr(0, event.find('/'));
  auto schema = stream_->Add(group, instance_.Read("events/" + event + "/format"), probe);
  EXPECT_TRUE(schema.ok()) << event << ": " << schema.error().ToString();
  return schema.ok() ? *schema : nullptr;
}

std::vector<event::Item> LiveStream::Take() {
  stream_->Flush();
  std::vector<event::Item> all;
  while (true) {
    auto items = events_->Next(4096, std::chrono::milliseconds(0));
    if (items.empty()) return all;
    std::move(items.begin(), items.end(), std::back_inserter(all));
  }
}

std::vector<event::HitRecord> LiveStream::TakeHits() {
  std::vector<event::HitRecord> hits;
  for (event::Item& item : Take()) {
    if (auto* hit = std::get_if<event::HitRecord>(&item)) hits.push_back(std::move(*hit));
  }
  return hits;
}

lang::Scalar ValueOf(const event::HitRecord& hit, const std::string& field) {
  const auto values = lang::DecodePayload(*hit.schema, hit.payload);
  if (!values.ok()) {
    ADD_FAILURE() << values.error().ToString();
    return {};
  }
  for (size_t i = 0; i < values->size(); ++i) {
    if (hit.schema->fields[i].name == field) return (*values)[i].elements.at(0);
  }
  ADD_FAILURE() << "no field " << field;
  return {};
}

std::string TextOf(const event::HitRecord& hit, const std::string& field) {
  return std::get<lang::StringValue>(ValueOf(hit, field)).bytes;
}

uint64_t NumberOf(const event::HitRecord& hit, const std::string& field) {
  const lang::Scalar value = ValueOf(hit, field);
  const auto* number = std::get_if<int64_t>(&value);
  return number != nullptr ? static_cast<uint64_t>(*number) : std::get<uint64_t>(value);
}

}  // namespace probed::kernel::testing
