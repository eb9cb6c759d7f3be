// A record is hostile input: whatever its bytes, decoding ends in values or an error.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/lang/recorded.h"

namespace probed::lang::testing {
namespace {

// One string field, the slot {offset, word}, and `data`.
std::vector<std::byte> Payload(uint32_t offset, uint32_t word, size_t data) {
  std::vector<std::byte> payload(8 + data, std::byte{'x'});
  std::memcpy(payload.data(), &offset, 4);
  std::memcpy(payload.data() + 4, &word, 4);
  return payload;
}

Result<std::vector<Value>> Decode(const std::vector<std::byte>& payload) {
  Recorded recorded(Dialect::kExtended, "p", "s=+0(%di):string");
  return DecodePayload(recorded.definition().schema, payload);
}

TEST(DecodePayload, TakesHonestStrings) {
  const auto values = Decode(Payload(8, 3 | kTruncatedBit, 3));
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(std::get<StringValue>(values->at(0).elements[0]), (StringValue{"xxx", false, true}));
  EXPECT_TRUE(Decode(Payload(8, 0, 0)).ok());
  EXPECT_TRUE(std::get<StringValue>(Decode(Payload(99, kFaultSlot, 0))->at(0).elements[0]).fault);
}

TEST(DecodePayload, RefusesSlotsOutsideTheRecord) {
  EXPECT_EQ(Decode(Payload(8, 4, 3)).error().reason, "BAD_PAYLOAD");
  EXPECT_EQ(Decode(Payload(12, 0, 3)).error().reason, "BAD_PAYLOAD");
  EXPECT_EQ(Decode(Payload(0xffffffff, 2, 3)).error().reason, "BAD_PAYLOAD");
  EXPECT_EQ(Decode(Payload(8, 0x7ffffffe, 3)).error().reason, "BAD_PAYLOAD");
  EXPECT_EQ(Decode(Payload(0, 8, 3)).error().reason, "BAD_PAYLOAD");  // inside the fixed part
  EXPECT_EQ(Decode(std::vector<std::byte>(7)).error().reason, "BAD_PAYLOAD");
}

TEST(DecodePayload, RefusesStringsThatShareBytes) {
  Recorded recorded(Dialect::kExtended, "p", "s=+0(%di):string[64]");
  std::vector<std::byte> payload(64 * 8 + 100000, std::byte{'x'});
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t slot[2] = {64 * 8, 100000};
    std::memcpy(payload.data() + 8 * i, slot, sizeof(slot));
  }
  const auto values = DecodePayload(recorded.definition().schema, payload);
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.error().reason, "BAD_PAYLOAD");
}

// Honest records with a few bytes changed or cut off, and plain noise.
std::vector<std::byte> Spoil(std::vector<std::byte> payload, std::mt19937_64& random) {
  if (random() % 4 == 0) payload.resize(random() % (2 * payload.size()));
  if (payload.empty()) return payload;
  const size_t changes = random() % 8 == 0 ? payload.size() : random() % 4;
  for (size_t i = 0; i < changes; ++i) {
    payload[random() % payload.size()] = static_cast<std::byte>(random() >> (random() % 8));
  }
  return payload;
}

TEST(DecodePayload, SurvivesSpoiltRecords) {
  Recorded recorded(Dialect::kExtended, "p",
                    "a=%di:u8 s=+0(%di):string t=+8(%di):ustring[3] b=+0(%di):bytes(\\9) "
                    "f=%xmm0:f32 g=%xmm1:f64 c=+0(%di):char[7] n=%di:b3@2/16 z=%di:s64");
  FakeContext context;
  context.regs[Reg::kDi] = 0x1000;
  const uint64_t memory[] = {0x6f6c6c6568, 0x1000, 0x1002, 0};
  context.MapObject(0x1000, memory);
  std::vector<std::byte> honest;
  Fetch(*recorded.definition().program, {}, context, honest);
  const EventSchema& schema = recorded.definition().schema;
  std::mt19937_64 random(20260102);
  size_t decoded = 0;
  size_t refused = 0;
  for (int round = 0; round < 50000; ++round) {
    const std::vector<std::byte> payload = Spoil(honest, random);
    const auto values = DecodePayload(schema, payload);
    ++(values.ok() ? decoded : refused);
    if (!values.ok()) continue;
    ASSERT_EQ(values->size(), schema.fields.size());
    std::string text;
    AppendArguments(schema, *values, text);
    ASSERT_LE(text.size(), 4 * payload.size() + 2000);
  }
  EXPECT_GT(decoded, 5000u);
  EXPECT_GT(refused, 5000u);
}

TEST(DecodePayload, RestoresEveryType) {
  FakeContext context;
  context.regs[Reg::kDi] = 0x80;
  Recorded recorded(Dialect::kExtended, "p",
                    "%di:s8 %di:u8 %di:x64 %di:char \\\"t\":string %di:f64");
  const auto values = recorded.Values(context);
  EXPECT_EQ(values[0].elements[0], Scalar(int64_t{-128}));
  EXPECT_EQ(values[1].elements[0], Scalar(uint64_t{128}));
  EXPECT_EQ(values[2].elements[0], Scalar(uint64_t{128}));
  EXPECT_EQ(values[3].elements[0], Scalar(uint64_t{128}));
  EXPECT_EQ(values[4].elements[0], Scalar(StringValue{"t", false, false}));
  EXPECT_TRUE(std::holds_alternative<double>(values[5].elements[0]));
}

}  // namespace
}  // namespace probed::lang::testing
