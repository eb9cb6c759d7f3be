// Both formats, from the API's messages to text.

#include <gtest/gtest.h>

#include "client/event_writer.h"

namespace probed::client {
namespace {

void AddField(v1::EventSchema& schema, const std::string& name, v1::FieldType::Base base,
              uint32_t count = 0) {
  v1::Field* field = schema.add_fields();
  field->set_name(name);
  field->mutable_type()->set_base(base);
  field->mutable_type()->set_is_array(count != 0);
  field->mutable_type()->set_count(count);
}

v1::EventSchema Schema(v1::ProbeKind kind) {
  v1::EventSchema schema;
  schema.set_id(1);
  schema.set_probe("targets/1-2/probes/1");
  schema.set_group("kgr");
  schema.set_event("a");
  schema.set_kind(kind);
  return schema;
}

v1::Event HitEvent() {
  v1::Event event;
  event.set_sequence(9);
  event.set_monotonic_ns(755'541'022'100);
  event.set_wall_ns(1'700'000'000'000'000'001);
  v1::Hit* hit = event.mutable_hit();
  hit->set_schema_id(1);
  hit->set_pid(23819);
  hit->set_tid(23819);
  hit->set_comm("kgrbin");
  hit->set_ip(0x5599cfc25149);
  return event;
}

class Writers : public ::testing::Test {
 protected:
  std::string Line(EventWriter& writer, const v1::EventSchema& schema, const v1::Event& event) {
    schemas_.Add(schema);
    std::string out;
    Hit hit;
    FromMessage(event, schemas_.Find(1)->schema, hit);
    writer.AppendHit(hit, *schemas_.Find(1), out);
    return out;
  }

  SchemaTable schemas_;
  std::unique_ptr<EventWriter> trace_ = MakeTraceWriter();
  std::unique_ptr<EventWriter> json_ = MakeJsonWriter();
};

// An event that only the kernel can print.
TEST_F(Writers, TextOfATracepoint) {
  v1::EventSchema schema = Schema(v1::PROBE_KIND_TRACEPOINT);
  AddField(schema, "nr", v1::FieldType::BASE_S32);
  AddField(schema, "text", v1::FieldType::BASE_STRING);
  schema.set_has_text(true);
  v1::Event event = HitEvent();
  event.mutable_hit()->set_common_flags(0x11);
  event.mutable_hit()->set_common_preempt_count(0x12);
  event.mutable_hit()->add_values()->set_signed_value(-1);
  event.mutable_hit()->add_values()->set_bytes_value("a: nr=-1");
  EXPECT_EQ(Line(*trace_, schema, event),
            "          kgrbin-23819   [000] d.s21   755.541022: a: nr=-1\n");
  EXPECT_NE(Line(*json_, schema, event).find(R"("args":{"nr":-1},"text":"a: nr=-1")"),
            std::string::npos);
}

TEST_F(Writers, ATracepointWithoutItsTextShowsItsFields) {
  v1::EventSchema schema = Schema(v1::PROBE_KIND_TRACEPOINT);
  AddField(schema, "nr", v1::FieldType::BASE_S32);
  v1::Event event = HitEvent();
  event.mutable_hit()->add_values()->set_signed_value(-1);
  EXPECT_EQ(Line(*trace_, schema, event),
            "          kgrbin-23819   [000] .....   755.541022: a: nr=-1\n");
}

// The line of a real kernel (but for the flags).
TEST_F(Writers, TraceEntry) {
  v1::EventSchema schema = Schema(v1::PROBE_KIND_ENTRY);
  AddField(schema, "arg1", v1::FieldType::BASE_X64);
  AddField(schema, "arg2", v1::FieldType::BASE_X64);
  AddField(schema, "s", v1::FieldType::BASE_STRING);
  AddField(schema, "d", v1::FieldType::BASE_U64);
  v1::Event event = HitEvent();
  event.mutable_hit()->add_values()->set_unsigned_value(0);
  event.mutable_hit()->add_values()->set_unsigned_value(0x5599cfc28040);
  event.mutable_hit()->add_values()->set_bytes_value("world");
  event.mutable_hit()->add_values()->set_unsigned_value(1311768467294899695);
  EXPECT_EQ(Line(*trace_, schema, event),
            "          kgrbin-23819   [000] .....   755.541022: a: (0x5599cfc25149) arg1=0x0 "
            "arg2=0x5599cfc28040 s=\"world\" d=1311768467294899695\n");
}

TEST_F(Writers, TraceReturn) {
  v1::EventSchema schema = Schema(v1::PROBE_KIND_RETURN);
  AddField(schema, "arg1", v1::FieldType::BASE_X64);
  v1::Event event = HitEvent();
  event.mutable_hit()->set_ip(0x5599cfc25203);
  event.mutable_hit()->set_function(0x5599cfc25149);
  event.mutable_hit()->add_values()->set_unsigned_value(0x1234567890abcf64);
  EXPECT_EQ(Line(*trace_, schema, event),
            "          kgrbin-23819   [000] .....   755.541022: a: (0x5599cfc25203 <- "
            "0x5599cfc25149) arg1=0x1234567890abcf64\n");
}

TEST_F(Writers, TraceWithoutEnoughValues) {
  v1::EventSchema schema = Schema(v1::PROBE_KIND_ENTRY);
  AddField(schema, "s", v1::FieldType::BASE_STRING);
  EXPECT_NE(Line(*trace_, schema, HitEvent()).find(" s=(fault)\n"), std::string::npos);
}

TEST_F(Writers, JsonOfEveryValue) {
  v1::EventSchema schema = Schema(v1::PROBE_KIND_ENTRY);
  AddField(schema, "u", v1::FieldType::BASE_U64);
  AddField(schema, "i", v1::FieldType::BASE_S32);
  AddField(schema, "c", v1::FieldType::BASE_CHAR);
  AddField(schema, "f", v1::FieldType::BASE_F64);
  AddField(schema, "gone", v1::FieldType::BASE_STRING);
  AddField(schema, "cut", v1::FieldType::BASE_STRING);
  AddField(schema, "raw", v1::FieldType::BASE_BYTES);
  AddField(schema, "list", v1::FieldType::BASE_U8, 2);
  v1::Event event = HitEvent();
  v1::Hit* hit = event.mutable_hit();
  hit->add_values()->set_unsigned_value(UINT64_MAX);
  hit->add_values()->set_signed_value(-5);
  hit->add_values()->set_unsigned_value('Q');
  hit->add_values()->set_double_value(1.5);
  hit->add_values()->set_fault(true);
  v1::Value* cut = hit->add_values();
  cut->set_bytes_value("abc");
  cut->set_truncated(true);
  hit->add_values()->set_bytes_value("\xff\"");
  v1::Array* list = hit->add_values()->mutable_array();
  list->add_elements()->set_unsigned_value(1);
  list->add_elements()->set_unsigned_value(2);
  EXPECT_EQ(Line(*json_, schema, event),
            R"({"type":"hit","sequence":9,"monotonic_ns":755541022100,)"
            R"("wall_ns":1700000000000000001,"group":"kgr","event":"a","kind":"entry",)"
            R"("probe":"targets/1-2/probes/1","pid":23819,"tid":23819,"cpu":0,"comm":"kgrbin",)"
            R"("ip":94119103975753,"args":{"u":18446744073709551615,"i":-5,"c":"Q","f":1.5,)"
            R"("gone":null,"cut":"abc","raw":"\u00ff\"","list":[1,2]},)"
            R"("truncated":["cut"],"hex":{"raw":"ff22"}})"
            "\n");
}

TEST_F(Writers, JsonOfLossAndExit) {
  v1::Event event;
  event.mutable_loss()->set_lost(3);
  event.mutable_loss()->set_first_sequence(4);
  event.mutable_loss()->set_last_sequence(6);
  std::string out;
  json_->AppendLoss(event, out);
  EXPECT_EQ(out,
            R"({"type":"loss","sequence":0,"monotonic_ns":0,"wall_ns":0,"lost":3,)"
            R"("first_sequence":4,"last_sequence":6,"first_monotonic_ns":0,"last_monotonic_ns":0})"
            "\n");
  out.clear();
  v1::Event end;
  end.mutable_target_change()->set_target("targets/1-2");
  end.mutable_target_change()->set_root("targets/1-2");
  end.mutable_target_change()->set_change(v1::TargetChange::CHANGE_EXITED);
  end.mutable_target_change()->set_wait_status(9);
  json_->AppendTargetChange(end, out);
  EXPECT_EQ(out, R"({"type":"target","sequence":0,"monotonic_ns":0,"wall_ns":0,"change":"exited",)"
                 R"("target":"targets/1-2","root":"targets/1-2","wait_status":9})"
                 "\n");
}

TEST_F(Writers, JsonOfCallsLeftWithoutAReturn) {
  v1::Event event;
  event.mutable_unwound()->set_schema_id(1);
  event.mutable_unwound()->set_calls(3);
  event.mutable_unwound()->set_pid(7);
  KnownSchema known;
  known.json_head = R"("group":"g","event":"e","kind":"return","probe":"targets/7-2/probes/1")";
  std::string out;
  json_->AppendUnwound(event, known, out);
  const std::string head = R"({"type":"unwound","sequence":0,"monotonic_ns":0,"wall_ns":0,)" +
                           known.json_head + R"(,"calls":3,"pid":7)";
  EXPECT_EQ(out, head + "}\n");
  event.mutable_unwound()->set_tid(8);
  out.clear();
  json_->AppendUnwound(event, known, out);
  EXPECT_EQ(out, head + ",\"tid\":8}\n");
}

TEST_F(Writers, TraceHasNoLineForLosses) {
  v1::Event event;
  event.mutable_loss()->set_lost(3);
  std::string out;
  trace_->AppendLoss(event, out);
  event.mutable_unwound()->set_calls(3);
  trace_->AppendUnwound(event, KnownSchema(), out);
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace probed::client
