// A page of the kernel's ring, walked and decoded; the first byte chooses among formats with every
// kind of field.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/kernel/event_decoder.h"
#include "engine/kernel/page.h"
#include "engine/lang/payload.h"

namespace {

using namespace probed::kernel;

constexpr const char* kHead =
    "name: e\nID: 7\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

constexpr const char* kFields[] = {
    "\tfield:__data_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:__rel_loc u8[] b;\toffset:12;\tsize:4;\tsigned:0;\n"
    "\tfield:char name[16];\toffset:16;\tsize:16;\tsigned:0;\n"
    "\tfield:struct x y;\toffset:32;\tsize:12;\tsigned:0;\n\n"
    "print fmt: \"%s %s %p %pS\", __get_str(s), REC->name, REC->y, REC->y\n",
    "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[][2] j;\toffset:16;\tsize:8;\tsigned:1;\n"
    "\tfield:u8 o[];\toffset:24;\tsize:4;\tsigned:0;\n\n"
    "print fmt: \"(%lx) j={\\\"%s\\\",\\\"%s\\\"} o={'%c','%c','%c','%c'}\", REC->__probe_ip\n",
    "\tfield:u32 buf[];\toffset:8;\tsize:0;\tsigned:0;\n\nprint fmt: \"%d\", REC->buf[0]\n",
};

EventDecoder Make(const char* fields) {
  auto decoder =
      EventDecoder::Create("g", std::string(kHead) + fields, std::make_shared<const Symbols>());
  if (!decoder.ok()) abort();
  return *std::move(decoder);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static EventDecoder decoders[] = {Make(kFields[0]), Make(kFields[1]), Make(kFields[2])};
  if (size == 0) return 0;
  EventDecoder& decoder = decoders[data[0] % 3];
  const std::vector<uint8_t> copy(data + 1, data + size);
  auto page = Page::Open(std::as_bytes(std::span(copy)));
  if (!page.ok()) return 0;
  probed::event::RingHit hit;
  while (const auto event = page->Next()) {
    if (!decoder.Decode(event->record, 0, hit)) continue;
    (void)probed::lang::DecodePayload(*hit.schema, hit.payload);
  }
  return 0;
}
