#include "engine/kernel/event_decoder.h"

#include <cstring>
#include <utility>

namespace probed::kernel {
namespace {

uint64_t AddressAt(std::span<const std::byte> record, uint32_t offset) {
  uint64_t address = 0;
  if (offset > 0) std::memcpy(&address, record.data() + offset, sizeof(address));
  return address;
}

}  // namespace

Result<EventDecoder> EventDecoder::Create(const std::string& group, const std::string& format,
                                          const std::shared_ptr<const Symbols>& symbols) {
  PROBED_TRY(const EventFormat parsed, ParseEventFormat(format));
  EventDecoder decoder;
  decoder.id_ = parsed.id;
  PROBED_TRY(decoder.plan_, PlanEvent(group, parsed));
  // What a definition has made prints from its values alone, but for names of symbols.
  const bool is_probe = decoder.plan_.schema.kind != lang::ProbeKind::kTracepoint;
  if (!is_probe) decoder.syscall_ = SyscallText::For(group, parsed);
  if (!decoder.syscall_ && (!is_probe || !decoder.plan_.symbols.empty()))
    decoder.print_ = PrintFormat::Parse(group, format, symbols);
  decoder.Complete();
  return decoder;
}

Result<EventDecoder> EventDecoder::Create(const std::string& group, const std::string& format,
                                          const EventOrigin& origin,
                                          std::shared_ptr<PlaceNames> names) {
  PROBED_TRY(const EventFormat parsed, ParseEventFormat(format));
  EventDecoder decoder;
  decoder.id_ = parsed.id;
  PROBED_TRY(decoder.plan_, PlanEvent(group, parsed, origin));
  decoder.probe_text_.emplace(decoder.plan_, origin, std::move(names));
  decoder.Complete();
  return decoder;
}

Result<EventDecoder> EventDecoder::OfText(const std::string& group, const std::string& format) {
  PROBED_TRY(const EventFormat parsed, ParseEventFormat(format));
  EventDecoder decoder;
  decoder.id_ = parsed.id;
  decoder.is_text_ = true;
  decoder.plan_.schema.group = group;
  decoder.plan_.schema.event = parsed.name;
  decoder.plan_.schema.kind = lang::ProbeKind::kTracepoint;
  AddText(decoder.plan_.schema);
  decoder.Complete();
  return decoder;
}

void EventDecoder::Complete() {
  if (print_ || syscall_ || probe_text_) AddText(plan_.schema);
  schema_ = std::make_shared<const lang::EventSchema>(plan_.schema);
}

std::string_view EventDecoder::TextOf(std::span<const std::byte> record, uint32_t cpu,
                                      const event::RingHit& hit) {
  if (is_text_) {
    const auto* const text = reinterpret_cast<const char*>(record.data());
    const std::string_view behind(text + kCommonBytes, record.size() - kCommonBytes);
    text_ = behind.starts_with(':') ? plan_.schema.event : "";
    return text_ += behind;
  }
  if (probe_text_) return probe_text_->Print(hit.header.ip, hit.header.function, payload_);
  return syscall_ ? syscall_->Print(record) : print_->Print(record, cpu);
}

bool EventDecoder::Decode(std::span<const std::byte> record, uint32_t cpu, event::RingHit& hit) {
  if (!MakePayload(plan_, record, payload_)) return false;
  hit.header.ip = AddressAt(record, plan_.ip_offset);
  hit.header.function = AddressAt(record, plan_.function_offset);
  if (plan_.schema.has_text) SetText(plan_, TextOf(record, cpu, hit), payload_);
  hit.payload = payload_;
  hit.schema = schema_;
  hit.header.flags = std::to_integer<uint8_t>(record[kCommonFlagsOffset]);
  hit.header.preempt_count = std::to_integer<uint8_t>(record[kCommonPreemptCountOffset]);
  return true;
}

}  // namespace probed::kernel
