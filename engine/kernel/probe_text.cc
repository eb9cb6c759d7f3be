#include "engine/kernel/probe_text.h"

#include <algorithm>
#include <variant>

#include "engine/lang/payload.h"
#include "engine/lang/print.h"

namespace probed::kernel {
namespace {

// Where another kretprobe has taken the return address (trace_output.c, kretprobed).
constexpr std::string_view kTrampoline = "arch_rethook_trampoline+0x0/";
constexpr std::string_view kOldTrampoline = "__kretprobe_trampoline+0x0/";
constexpr std::string_view kHidden = "[unknown/kretprobe'd]";

}  // namespace

void ProbeText::AppendPlace(uint64_t ip, uint64_t function) {
  if (origin_.kind == EventOrigin::Kind::kEvent) {
    text_ += origin_.event;
    return;
  }
  const std::string& place = names_->WithOffset(ip);
  const bool hidden = place.starts_with(kTrampoline) || place.starts_with(kOldTrampoline);
  text_ += hidden ? kHidden : std::string_view(place);
  if (plan_.schema.kind != lang::ProbeKind::kReturn) return;
  text_ += " <- ";
  text_ += names_->Bare(function);
}

void ProbeText::AppendSymbols(const lang::FieldSchema& field, const lang::Value& value) {
  text_ += ' ';
  text_ += field.name;
  text_ += value.is_array ? "={" : "=";
  for (size_t i = 0; i < value.elements.size(); ++i) {
    const auto* const address = std::get_if<uint64_t>(&value.elements[i]);
    if (i > 0) text_ += ',';
    text_ += names_->WithOffset(address != nullptr ? *address : 0);
  }
  if (value.is_array) text_ += '}';
}

std::string_view ProbeText::Print(uint64_t ip, uint64_t function,
                                  std::span<const std::byte> payload) {
  text_ = plan_.schema.event;
  text_ += ": (";
  AppendPlace(ip, function);
  text_ += ')';
  if (!lang::DecodePayload(plan_.schema, payload, values_).ok()) return text_;
  for (size_t i = 0; i < values_.size(); ++i) {
    const lang::FieldSchema& field = plan_.schema.fields[i];
    const auto& symbols = plan_.symbols;
    if (std::find(symbols.begin(), symbols.end(), i) != symbols.end()) {
      AppendSymbols(field, values_[i]);
    } else {
      lang::AppendArgument(field, values_[i], text_);
    }
  }
  return text_;
}

}  // namespace probed::kernel
