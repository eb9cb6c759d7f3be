#pragma once
// The text of an event as its print fmt says it: one libtraceevent handle that knows one event.
// One thread at a time.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/symbols.h"

struct tep_event;
struct tep_handle;
struct trace_seq;

namespace probed::kernel {

class PrintFormat {
 public:
  // `format`: the text of the format file. Nothing, if libtraceevent cannot read its print fmt:
  // then there are calls in it that only the kernel can make.
  static std::unique_ptr<PrintFormat> Parse(const std::string& group, const std::string& format,
                                            std::shared_ptr<const Symbols> symbols);
  ~PrintFormat();
  PrintFormat(const PrintFormat&) = delete;
  PrintFormat& operator=(const PrintFormat&) = delete;

  // "NAME: TEXT", valid until the next call. The places of all fields were checked before
  // (MakePayload): libtraceevent does not.
  std::string_view Print(std::span<const std::byte> record, uint32_t cpu);

 private:
  PrintFormat(tep_handle* handle, std::shared_ptr<const Symbols> symbols);
  std::string_view AddSizes(std::string_view text);
  static char* FindSymbol(void* self, unsigned long long* address, char** module);

  tep_handle* const handle_;
  const std::shared_ptr<const Symbols> symbols_;
  std::unique_ptr<trace_seq> text_;
  std::string prefix_;             // "NAME: "
  std::vector<std::byte> record_;  // a copy with zeroes behind it
  std::string found_;              // what libtraceevent was told last
  std::string found_module_;
  std::vector<const Symbols::Symbol*> asked_;  // by this call of Print
  std::string with_sizes_;
};

}  // namespace probed::kernel
