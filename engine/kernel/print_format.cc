#include "engine/kernel/print_format.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <event-parse.h>
#include <fmt/format.h>
#include <trace-seq.h>

namespace probed::kernel {
namespace {

// Behind a record, so that what libtraceevent takes for a string ends.
constexpr size_t kPadding = 64;

bool UsesSymbols(std::string_view print_format) {
  for (const std::string_view conversion : {"%ps", "%pS", "%pf", "%pF", "%pB"}) {
    if (print_format.find(conversion) != print_format.npos) return true;
  }
  return false;
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Bare pointers as the kernel shows them where it does not hash them: 16 digits. libtraceevent
// would print them as the C library does.
std::string WithPlainPointers(const std::string& format) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    const bool is_pointer = format.compare(i, 2, "%p") == 0;
    const char next = is_pointer && i + 2 < format.size() ? format[i + 2] : ' ';
    if (is_pointer && (next == 'x' || next == 'K')) {
      out += "%016lx";
      i += 2;
    } else if (is_pointer && !IsLetter(next)) {
      out += "%016lx";
      i += 1;
    } else {
      out += format[i];
    }
  }
  return out;
}

}  // namespace

PrintFormat::PrintFormat(tep_handle* handle, std::shared_ptr<const Symbols> symbols)
    : handle_(handle), symbols_(std::move(symbols)), text_(std::make_unique<trace_seq>()) {
  trace_seq_init(text_.get());
}

PrintFormat::~PrintFormat() {
  trace_seq_destroy(text_.get());
  tep_free(handle_);
}

std::unique_ptr<PrintFormat> PrintFormat::Parse(const std::string& group, const std::string& format,
                                                std::shared_ptr<const Symbols> symbols) {
  tep_set_loglevel(TEP_LOG_NONE);
  tep_handle* const handle = tep_alloc();
  if (handle == nullptr) return nullptr;
  std::unique_ptr<PrintFormat> self(new PrintFormat(handle, std::move(symbols)));
  const std::string readable = WithPlainPointers(format);
  if (tep_parse_event(handle, readable.data(), readable.size(), group.c_str()) != 0) return nullptr;
  const tep_event* const event = tep_get_event(handle, 0);
  if (event == nullptr || (event->flags & static_cast<int>(TEP_EVENT_FL_FAILED)) != 0)
    return nullptr;
  self->prefix_ = std::string(event->name) + ": ";
  const std::string_view print_format(format.data() + format.find("print fmt:"));
  if (UsesSymbols(print_format)) tep_set_function_resolver(handle, FindSymbol, self.get());
  if (print_format.find("%s") != print_format.npos) {
    for (const auto& [address, text] : self->symbols_->strings())
      tep_register_print_string(handle, text.c_str(), address);
  }
  return self;
}

char* PrintFormat::FindSymbol(void* self, unsigned long long* address, char** module) {
  auto& format = *static_cast<PrintFormat*>(self);
  const Symbols::Symbol* const symbol = format.symbols_->Find(*address);
  if (symbol == nullptr) return nullptr;
  *address = symbol->address;
  format.asked_.push_back(symbol);
  format.found_ = symbol->name;
  format.found_module_ = symbol->module;
  *module = format.found_module_.empty() ? nullptr : format.found_module_.data();
  return format.found_.data();
}

// "name+0x1c" to "name+0x1c/0x90", as the kernel's %pS has it.
std::string_view PrintFormat::AddSizes(std::string_view text) {
  with_sizes_.clear();
  for (const Symbols::Symbol* const symbol : asked_) {
    const std::string key = symbol->name + "+0x";
    const size_t at = text.find(key);
    if (at == text.npos) continue;  // %ps
    const size_t end =
        std::min(text.find_first_not_of("0123456789abcdef", at + key.size()), text.size());
    with_sizes_ += text.substr(0, end);
    fmt::format_to(std::back_inserter(with_sizes_), "/{:#x}", symbols_->SizeOf(*symbol));
    text.remove_prefix(end);
  }
  return with_sizes_ += text;
}

std::string_view PrintFormat::Print(std::span<const std::byte> record, uint32_t cpu) {
  record_.assign(record.begin(), record.end());
  record_.resize(record.size() + kPadding);
  tep_record raw{};
  raw.size = static_cast<int>(record.size());
  raw.record_size = raw.size;
  raw.data = record_.data();
  raw.cpu = static_cast<int>(cpu);
  asked_.clear();
  trace_seq_reset(text_.get());
  trace_seq_puts(text_.get(), prefix_.c_str());
  tep_print_event(handle_, text_.get(), &raw, "%s", TEP_PRINT_INFO);
  const std::string_view text(text_->buffer, text_->len);
  return asked_.empty() ? text : AddSizes(text);
}

}  // namespace probed::kernel
