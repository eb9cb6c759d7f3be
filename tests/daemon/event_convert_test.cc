#include "daemon/convert/event.h"

#include <cstring>

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

event::HitRecord Hit(std::vector<lang::FieldSchema> fields, std::vector<std::byte> payload) {
  auto schema = std::make_shared<lang::EventSchema>();
  for (const auto& field : fields)
    schema->fixed_size += field.size;
  schema->fields = std::move(fields);
  event::HitRecord hit;
  hit.sequence = 1;
  hit.probe = 2;
  hit.target = {3, 4};
  hit.tid = 5;
  hit.cpu = 6;
  hit.monotonic_ns = 7;
  hit.wall_ns = -8;
  hit.ip = 9;
  hit.function = 10;
  std::strcpy(hit.comm.data(), "fifteen_chars__");
  hit.schema = schema;
  hit.payload = std::move(payload);
  return hit;
}

v1::Event Converted(const event::HitRecord& hit) {
  event::PackedHits packed;
  packed.Append(hit);
  v1::Event out;
  ToProto(packed.front(), &out);
  return out;
}
template <class Notice>
v1::Event Converted(const Notice& notice) {
  v1::Event out;
  ToProto(notice, &out);
  return out;
}

TEST(Event, HitCarriesEverything) {
  const v1::Event event =
      Converted(Hit({{"n", {lang::BaseType::kS32, false, 1, 0, 0}, 0, 4}},
                    {std::byte{0xfe}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff}}));
  EXPECT_EQ(event.sequence(), 1u);
  EXPECT_EQ(event.monotonic_ns(), 7u);
  EXPECT_EQ(event.wall_ns(), -8);
  EXPECT_EQ(event.hit().schema_id(), 2u);
  EXPECT_EQ(event.hit().pid(), 3);
  EXPECT_EQ(event.hit().tid(), 5);
  EXPECT_EQ(event.hit().cpu(), 6u);
  EXPECT_EQ(event.hit().comm(), "fifteen_chars__");
  EXPECT_EQ(event.hit().ip(), 9u);
  EXPECT_EQ(event.hit().function(), 10u);
  ASSERT_EQ(event.hit().values_size(), 1);
  EXPECT_EQ(event.hit().values(0).signed_value(), -2);
}

TEST(Event, BrokenPayloadBecomesFaults) {
  const v1::Event event = Converted(Hit({{"a", {lang::BaseType::kX64, false, 1, 0, 0}, 0, 8},
                                         {"b", {lang::BaseType::kString, false, 1, 0, 0}, 8, 8}},
                                        {std::byte{1}}));
  ASSERT_EQ(event.hit().values_size(), 2);
  EXPECT_TRUE(event.hit().values(0).fault());
  EXPECT_TRUE(event.hit().values(1).fault());
}

TEST(Event, CommNeedNotBeTerminated) {
  event::HitRecord hit = Hit({}, {});
  hit.comm.fill('x');
  EXPECT_EQ(Converted(hit).hit().comm(), std::string(16, 'x'));
}

TEST(Value, EveryKind) {
  auto convert = [](const lang::Value& value) {
    v1::Value out;
    ToProto(value, &out);
    return out;
  };
  EXPECT_EQ(convert({false, {uint64_t{7}}}).unsigned_value(), 7u);
  EXPECT_EQ(convert({false, {int64_t{-7}}}).signed_value(), -7);
  EXPECT_EQ(convert({false, {2.5}}).double_value(), 2.5);
  const v1::Value text = convert({false, {lang::StringValue{"a\xff", false, true}}});
  EXPECT_EQ(text.bytes_value(), "a\xff");
  EXPECT_TRUE(text.truncated());
  EXPECT_TRUE(convert({false, {lang::StringValue{"", true, false}}}).fault());
  const v1::Value array = convert({true, {uint64_t{1}, uint64_t{2}}});
  ASSERT_EQ(array.array().elements_size(), 2);
  EXPECT_EQ(array.array().elements(1).unsigned_value(), 2u);
}

TEST(Event, CallsLeftWithoutAReturn) {
  const v1::Event event = Converted(event::UnwoundNotice{
      .probe = 3, .target = {10, 1}, .tid = 11, .calls = 5, .schema = nullptr});
  EXPECT_EQ(event.unwound().schema_id(), 3u);
  EXPECT_EQ(event.unwound().calls(), 5u);
  EXPECT_EQ(event.unwound().pid(), 10);
  EXPECT_EQ(event.unwound().tid(), 11);
  EXPECT_GT(event.wall_ns(), 0);
}

TEST(Event, LossAndTargetChange) {
  const v1::Event loss = Converted(event::LossNotice{5, 1, 9, 100, 200});
  EXPECT_EQ(loss.loss().lost(), 5u);
  EXPECT_EQ(loss.loss().first_sequence(), 1u);
  EXPECT_EQ(loss.loss().last_sequence(), 9u);
  event::TargetNotice notice;
  notice.target = {10, 1};
  notice.root = {9, 1};
  notice.change = event::TargetChange::kExited;
  notice.exit_status = 256;
  const v1::Event change = Converted(notice);
  EXPECT_EQ(change.target_change().target(), "targets/10-1");
  EXPECT_EQ(change.target_change().root(), "targets/9-1");
  EXPECT_EQ(change.target_change().change(), v1::TargetChange::CHANGE_EXITED);
  EXPECT_EQ(change.target_change().wait_status(), 256);
  EXPECT_GT(change.wall_ns(), 0);
}

}  // namespace
}  // namespace probed::daemon
