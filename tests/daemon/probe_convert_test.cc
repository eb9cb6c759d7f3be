#include <gtest/gtest.h>

#include "daemon/convert/probe.h"

namespace probed::daemon {
namespace {

engine::ProbeInfo SomeProbe() {
  auto schema = std::make_shared<lang::EventSchema>();
  schema->kind = lang::ProbeKind::kReturn;
  schema->group = "g";
  schema->event = "e";
  schema->fields.push_back({"text", {lang::BaseType::kString, true, 2, 0, 0}, 0, 16});
  engine::ProbeInfo probe;
  probe.id = 9;
  probe.target = {1, 2};
  probe.definition = "r:g/e /bin/x:0x10 text=+0($retval):string[2]";
  probe.path = "/bin/x";
  probe.offset = 0x10;
  probe.schema = schema;
  probe.enabled = true;
  probe.state = engine::ProbeState::kArmed;
  probe.mechanism = engine::Mechanism::kBoosted;
  probe.counters = {10, 6, 3, 5, 4, 1, 2};
  return probe;
}

TEST(Probe, ToProto) {
  const v1::Probe probe = ToProto(SomeProbe());
  EXPECT_EQ(probe.name(), "targets/1-2/probes/9");
  EXPECT_EQ(probe.id(), 9u);
  EXPECT_EQ(probe.kind(), v1::PROBE_KIND_RETURN);
  EXPECT_EQ(probe.state(), v1::Probe::STATE_ARMED);
  EXPECT_EQ(probe.mechanism(), v1::MECHANISM_BOOSTED);
  EXPECT_EQ(probe.counters().hits(), 10u);
  EXPECT_EQ(probe.counters().recorded(), 6u);
  EXPECT_EQ(probe.counters().filtered(), 3u);
  EXPECT_EQ(probe.counters().sampled_out(), 5u);
  EXPECT_EQ(probe.counters().missed(), 4u);
  EXPECT_EQ(probe.counters().unwound(), 1u);
  EXPECT_EQ(probe.counters().lost(), 2u);
  ASSERT_EQ(probe.fields_size(), 1);
  EXPECT_EQ(probe.fields(0).name(), "text");
  EXPECT_EQ(probe.fields(0).type().base(), v1::FieldType::BASE_STRING);
  EXPECT_TRUE(probe.fields(0).type().is_array());
  EXPECT_EQ(probe.fields(0).type().count(), 2u);
}

TEST(Probe, EveryTypeHasItsName) {
  const std::pair<lang::BaseType, v1::FieldType::Base> rows[] = {
      {lang::BaseType::kU8, v1::FieldType::BASE_U8},
      {lang::BaseType::kU16, v1::FieldType::BASE_U16},
      {lang::BaseType::kU32, v1::FieldType::BASE_U32},
      {lang::BaseType::kU64, v1::FieldType::BASE_U64},
      {lang::BaseType::kS8, v1::FieldType::BASE_S8},
      {lang::BaseType::kS16, v1::FieldType::BASE_S16},
      {lang::BaseType::kS32, v1::FieldType::BASE_S32},
      {lang::BaseType::kS64, v1::FieldType::BASE_S64},
      {lang::BaseType::kX8, v1::FieldType::BASE_X8},
      {lang::BaseType::kX16, v1::FieldType::BASE_X16},
      {lang::BaseType::kX32, v1::FieldType::BASE_X32},
      {lang::BaseType::kX64, v1::FieldType::BASE_X64},
      {lang::BaseType::kChar, v1::FieldType::BASE_CHAR},
      {lang::BaseType::kString, v1::FieldType::BASE_STRING},
      {lang::BaseType::kUstring, v1::FieldType::BASE_USTRING},
      {lang::BaseType::kF32, v1::FieldType::BASE_F32},
      {lang::BaseType::kF64, v1::FieldType::BASE_F64},
      {lang::BaseType::kBytes, v1::FieldType::BASE_BYTES}};
  for (const auto& [from, to] : rows) {
    lang::ArgType type;
    type.base = from;
    EXPECT_EQ(ToProto(type).base(), to);
  }
}

TEST(Probe, SchemaIsKnownByTheProbe) {
  const engine::ProbeInfo probe = SomeProbe();
  const v1::EventSchema schema = ToSchema(probe.target, probe.id, *probe.schema);
  EXPECT_EQ(schema.id(), 9u);
  EXPECT_EQ(schema.probe(), "targets/1-2/probes/9");
  EXPECT_EQ(schema.fields_size(), 1);
}

TEST(CreateProbes, Options) {
  v1::CreateProbesRequest request;
  auto options = ToOptions(request);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->dialect, lang::Dialect::kExtended);
  EXPECT_TRUE(options->enable);
  EXPECT_EQ(options->string_limit, 4096u);
  request.set_dialect(v1::DIALECT_KERNEL);
  request.set_disabled(true);
  request.set_string_limit(1u << 20);
  options = ToOptions(request);
  EXPECT_EQ(options->dialect, lang::Dialect::kKernel);
  EXPECT_FALSE(options->enable);
  request.set_string_limit((1u << 20) + 1);
  EXPECT_EQ(ToOptions(request).error().reason, "INVALID_STRING_LIMIT");
}

TEST(UpdateProbe, ChangesWhatTheMaskNames) {
  v1::UpdateProbeRequest request;
  request.mutable_probe()->set_filter("n==1");
  request.mutable_update_mask()->add_paths("filter");
  auto changes = ToChanges(request);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(changes->filter, "n==1");
  EXPECT_EQ(changes->enabled, std::nullopt);
  request.mutable_update_mask()->add_paths("enabled");
  changes = ToChanges(request);
  EXPECT_EQ(changes->filter, "n==1");
  EXPECT_EQ(changes->enabled, false);
}

TEST(UpdateProbe, WithoutMaskKeepsTheFilterThatIsNotGiven) {
  v1::UpdateProbeRequest request;
  request.mutable_probe()->set_enabled(true);
  const auto changes = ToChanges(request);
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(changes->enabled, true);
  EXPECT_EQ(changes->filter, std::nullopt);
  request.mutable_update_mask()->add_paths("*");
  EXPECT_EQ(ToChanges(request)->filter, "");
}

TEST(UpdateProbe, NothingElseChanges) {
  for (const char* path : {"definition", "name", "counters.hits", ""}) {
    v1::UpdateProbeRequest other;
    other.mutable_update_mask()->add_paths(path);
    EXPECT_EQ(ToChanges(other).error().reason, "FIELD_NOT_MUTABLE") << path;
  }
}

}  // namespace
}  // namespace probed::daemon
