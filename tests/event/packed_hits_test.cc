#include "engine/event/packed_hits.h"

#include <gtest/gtest.h>

#include <cstring>

namespace probed::event {
namespace {

HitRecord Example(uint64_t probe, size_t payload, SchemaPtr schema) {
  HitRecord hit;
  hit.sequence = 1;
  hit.probe = probe;
  hit.target = {3, 4};
  hit.tid = 5;
  std::strcpy(hit.comm.data(), "name");
  hit.cpu = 6;
  hit.monotonic_ns = 7;
  hit.wall_ns = -8;
  hit.ip = 9;
  hit.function = 10;
  hit.payload.assign(payload, std::byte{0x5a});
  hit.schema = std::move(schema);
  return hit;
}

TEST(PackedHits, UnpackIsTheInverse) {
  auto schema = std::make_shared<lang::EventSchema>();
  schema->kind = lang::ProbeKind::kReturn;
  PackedHits hits;
  hits.Append(Example(2, 13, schema));
  const HitRecord hit = Unpack(hits.front());
  EXPECT_EQ(hit.sequence, 1u);
  EXPECT_EQ(hit.probe, 2u);
  EXPECT_EQ(hit.target, (TargetId{3, 4}));
  EXPECT_EQ(hit.tid, 5);
  EXPECT_STREQ(hit.comm.data(), "name");
  EXPECT_EQ(hit.cpu, 6u);
  EXPECT_EQ(hit.monotonic_ns, 7u);
  EXPECT_EQ(hit.wall_ns, -8);
  EXPECT_EQ(hit.kind, lang::ProbeKind::kReturn);
  EXPECT_EQ(hit.ip, 9u);
  EXPECT_EQ(hit.function, 10u);
  EXPECT_EQ(hit.payload, std::vector(13, std::byte{0x5a}));
  EXPECT_EQ(hit.schema, schema);
}

TEST(PackedHits, EachHitKeepsItsSchema) {
  std::vector<SchemaPtr> schemas(100);
  for (SchemaPtr& schema : schemas)
    schema = std::make_shared<lang::EventSchema>();
  schemas[50] = nullptr;
  PackedHits hits;
  for (size_t i = 0; i < 1000; ++i)
    hits.Append(Example(i, i % 9, schemas[i * 7 % 100]));
  size_t i = 0;
  hits.ForEach([&](const HitView& hit) {
    EXPECT_EQ(*hit.schema, schemas[i * 7 % 100]);
    EXPECT_EQ(hit.payload().size(), i % 9);
    EXPECT_EQ(hit.header->probe, i++);
  });
  EXPECT_EQ(i, 1000u);
}

TEST(PackedHits, TheBytesAreWhatAReaderTakes) {
  PackedHits hits;
  for (uint64_t i = 0; i < 10; ++i)
    hits.Append(Example(i, i, nullptr));
  hits.PopFront();
  const std::string bytes = hits.TakeBytes();
  EXPECT_TRUE(hits.empty());
  lang::PackedHitReader reader(std::as_bytes(std::span(bytes)));
  for (uint64_t i = 1; i < 10; ++i) {
    const auto hit = reader.Next();
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->header.probe, i);
    EXPECT_EQ(hit->payload.size(), i);
  }
  EXPECT_FALSE(reader.Next());
  EXPECT_TRUE(reader.at_end());
}

TEST(PackedHitReader, EndsAtADamagedRecord) {
  PackedHits hits;
  hits.Append(Example(1, 16, nullptr));
  const std::string whole = hits.TakeBytes();
  auto ends_at_once = [](std::string bytes) {
    lang::PackedHitReader reader(std::as_bytes(std::span(bytes)));
    return !reader.Next() && !reader.at_end();
  };
  for (size_t size = 1; size < whole.size(); ++size)
    EXPECT_TRUE(ends_at_once(whole.substr(0, size))) << size;
  for (uint32_t size : {0u, 8u, 95u, 113u, ~0u}) {
    std::string bytes = whole;
    std::memcpy(bytes.data(), &size, sizeof(size));
    EXPECT_TRUE(ends_at_once(bytes)) << size;
  }
  std::string bytes = whole;
  const uint32_t payload = 17;
  std::memcpy(bytes.data() + 4, &payload, sizeof(payload));
  EXPECT_TRUE(ends_at_once(bytes));
}

}  // namespace
}  // namespace probed::event
