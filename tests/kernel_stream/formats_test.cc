// Formats: every one that the running kernel has, with libtraceevent as the second reader, and
// those of probe events of every type.

#include <event-parse.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "base/file.h"
#include "engine/kernel/event_decoder.h"
#include "engine/kernel/event_format.h"
#include "tests/kernel_control/own_tracefs.h"

namespace probed::kernel {
namespace {

struct FormatFile {
  std::string group;
  std::string event;
  std::string text;
};

std::vector<FormatFile> AllFormats(const Tracefs& tracefs) {
  std::vector<FormatFile> files;
  for (const std::string& group : tracefs.Directories("events")) {
    for (const std::string& event : tracefs.Directories("events/" + group)) {
      auto text = tracefs.Read(fmt::format("events/{}/{}/format", group, event));
      if (text.ok()) files.push_back({group, event, *std::move(text)});
    }
  }
  return files;
}

// Name, offset and size of what is not common.
using Places = std::set<std::tuple<std::string, uint32_t, uint32_t>>;

Places PlacesByLibrary(const FormatFile& file) {
  Places places;
  tep_handle* const handle = tep_alloc();
  tep_event* event = nullptr;
  tep_parse_format(handle, &event, file.text.data(), file.text.size(), file.group.c_str());
  if (event != nullptr) {
    for (const tep_format_field* field = event->format.fields; field != nullptr;
         field = field->next)
      places.emplace(field->name, field->offset, field->size);
  }
  tep_free(handle);
  return places;
}

TEST(Formats, EveryOneOfThisKernelGivesASchemaOrANamedRefusal) {
  const auto tracefs = testing::RealTracefs();
  if (!tracefs) GTEST_SKIP() << "no tracefs";
  tep_set_loglevel(TEP_LOG_NONE);
  const auto symbols = std::make_shared<const Symbols>();
  size_t schemas = 0, refused = 0, with_text = 0;
  for (const FormatFile& file : AllFormats(*tracefs)) {
    const auto decoder = EventDecoder::Create(file.group, file.text, symbols);
    if (!decoder.ok()) {
      EXPECT_EQ(decoder.error().reason, "UNSUPPORTED_EVENT_FIELD") << file.text;
      ++refused;
      continue;
    }
    ++schemas;
    const lang::EventSchema& schema = *decoder->schema();
    with_text += schema.has_text ? 1 : 0;
    EXPECT_EQ(schema.event, file.event);
    const auto format = ParseEventFormat(file.text);
    ASSERT_TRUE(format.ok());
    Places places;
    for (const FormatField& field : format->fields)
      places.emplace(field.name, field.offset, field.size);
    EXPECT_EQ(places, PlacesByLibrary(file)) << file.group << '/' << file.text;
  }
  std::printf("%zu schemas, %zu refused, %zu with the text of their print fmt\n", schemas, refused,
              with_text);
  EXPECT_GT(schemas, 100u);
  EXPECT_LT(refused * 100, schemas);
}

}  // namespace
}  // namespace probed::kernel
