#include "engine/probe/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace probed::probe {
namespace {

Error SiteError(std::string reason, std::string message) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = "",
               .metadata = {}};
}

Result<uint8_t> ReadByte(tracee::CodeMemory& code, RemoteAddr address) {
  uint8_t value = 0;
  PROBED_RETURN_IF_ERROR(code.Read(address, {&value, 1}));
  return value;
}

}  // namespace

Mechanism Site::mechanism() const {
  if (gone_) return Mechanism::kNone;
  if (optimization_) return Mechanism::kOptimized;
  return copy_.boosted || is_emulated() ? Mechanism::kBoosted : Mechanism::kUnoptimized;
}

std::string Site::reason() const {
  if (gone_) return obstacle_;
  if (mechanism() == Mechanism::kUnoptimized) {
    return "the instruction takes a second trap: " + instruction_.text;
  }
  if (optimization_) return "a jump leads to code that records the hit in the program itself";
  if (!obstacle_.empty()) return obstacle_;
  if (undecided()) return std::string(kUndecided);
  if (copy_.boosted) return "the out-of-line copy ends in a jump back";
  return "the instruction is emulated";
}

void Site::set_copy(RemoteAddr address, arch::OutOfLineCopy copy) {
  copy_address_ = address;
  copy_ = std::move(copy);
}

bool Site::is_ambiguous() const {
  constexpr uint8_t kLockPrefix = 0xf0;
  if (is_generated() || instruction_.length == 1 || instruction_.bytes[0] == kLockPrefix)
    return true;
  return std::any_of(probes_.begin(), probes_.end(),
                     [](const auto& probe) { return probe->options.force; });
}

bool Site::HasDisabledReturn() const {
  return std::any_of(probes_.begin(), probes_.end(),
                     [](const auto& probe) { return probe->hijacks() && !probe->enabled; });
}

bool Site::Carries(const Probe& probe) const {
  return std::any_of(probes_.begin(), probes_.end(),
                     [&](const auto& entry) { return entry.get() == &probe; });
}

void Site::AddProbe(std::shared_ptr<Probe> probe) {
  if (Carries(*probe)) return;
  Reconsider();
  if (armed_) {
    ++probe->sites;
    probe->was_armed = true;
  }
  // Sites are built in any order (a library is mapped after the probes were defined); ids say age.
  auto place = std::find_if(probes_.begin(), probes_.end(),
                            [&](const auto& entry) { return entry->id < probe->id; });
  probes_.insert(place, std::move(probe));
}

// What stands against a jump may be one probe's doing.
void Site::Reconsider() {
  if (!barred_ && !gone_) obstacle_.clear();
}

void Site::RemoveProbe(const Probe& probe) {
  Reconsider();
  std::erase_if(probes_, [&](const auto& entry) {
    if (entry.get() != &probe) return false;
    if (armed_) --entry->sites;
    return true;
  });
}

bool Site::wanted() const {
  if (gone_) return false;
  return hooks_ != 0 || std::any_of(probes_.begin(), probes_.end(),
                                    [](const auto& probe) { return probe->enabled; });
}

void Site::CountArmed(int change) {
  armed_ = change > 0;
  for (const auto& probe : probes_) {
    probe->sites += static_cast<uint32_t>(change);
    if (armed_) probe->was_armed = true;
  }
}

void Site::Leave(std::string why) {
  if (armed_) CountArmed(-1);
  gone_ = true;
  obstacle_ = std::move(why);
}

// Never below zero, as in the kernel (uprobes.c, update_ref_ctr): the program may write there too.
void Site::ChangeReferenceCounter(tracee::Stopped& stopped, int change) const {
  if (reference_counter_.value == 0) return;
  int16_t value = 0;
  auto bytes = std::as_writable_bytes(std::span(&value, 1));
  if (!stopped.ReadMemory(reference_counter_, bytes).ok() || value + change < 0) return;
  value = static_cast<int16_t>(value + change);
  (void)stopped.WriteMemory(reference_counter_, bytes);
}

void Site::SetReferenceCounter(tracee::Stopped& stopped, RemoteAddr counter) {
  if (reference_counter_.value != 0) return;
  reference_counter_ = counter;
  if (armed_) ChangeReferenceCounter(stopped, +1);
}

const lang::Definition* Site::MissingReferenceCounter() const {
  if (reference_counter_.value != 0) return nullptr;
  for (const auto& probe : probes_) {
    if (probe->definition->ref_ctr_offset != 0) return probe->definition.get();
  }
  return nullptr;
}

Status Site::Arm(tracee::CodeMemory& code) {
  if (armed_) return {};
  PROBED_TRY(uint8_t present, ReadByte(code, address_));
  if (present != instruction_.bytes[0]) {
    return SiteError("SITE_CHANGED",
                     fmt::format("the byte at {:#x} changed from {:#04x} to {:#04x}",
                                 address_.value, instruction_.bytes[0], present));
  }
  if (is_generated() && !code.Holds(address_, instruction_.code())) {
    return SiteError("SITE_CHANGED",
                     fmt::format("the instruction at {:#x} has changed", address_.value));
  }
  PROBED_RETURN_IF_ERROR(code.Write(address_, {&kBreakpointByte, 1}));
  CountArmed(+1);
  ChangeReferenceCounter(code.stopped(), +1);
  return {};
}

Status Site::Disarm(tracee::CodeMemory& code) {
  if (!armed_) return {};
  if (optimization_) {
    return SiteError("SITE_OPTIMIZED", fmt::format("a jump of ours is at {:#x}", address_.value));
  }
  Result<uint8_t> present = ReadByte(code, address_);
  bool is_ours = present.ok() && *present == kBreakpointByte;
  if (is_ours) {
    PROBED_RETURN_IF_ERROR(code.Write(address_, {instruction_.bytes.data(), 1}));
  }
  CountArmed(-1);
  ChangeReferenceCounter(code.stopped(), -1);
  if (is_ours) return {};
  if (!present.ok()) return std::move(present).error();
  return SiteError("SITE_OVERWRITTEN",
                   fmt::format("the byte at {:#x} is {:#04x}, not ours", address_.value, *present));
}

Status Site::Optimize(tracee::CodeMemory& code, std::shared_ptr<const Optimization> optimization) {
  Status written;
  size_t done = 0;
  for (; written.ok() && done < optimization->patches.size(); ++done) {
    const CodePatch& patch = optimization->patches[done];
    written = code.Write(patch.address, patch.patched);
  }
  if (written.ok()) {
    optimization_ = std::move(optimization);
    return {};
  }
  while (done-- > 0) {
    const CodePatch& patch = optimization->patches[done];
    (void)code.Write(patch.address, patch.original);
  }
  (void)code.Write(address_, {&kBreakpointByte, 1});
  return written;
}

// The jump at the site is the last patch, so the first to go; the breakpoint comes with its write.
Status Site::Unoptimize(tracee::CodeMemory& code) {
  if (!optimization_) return {};
  bool is_ours = true;
  const auto& patches = optimization_->patches;
  for (auto patch = patches.rbegin(); patch != patches.rend(); ++patch) {
    bool is_jump = patch == patches.rbegin();
    bool intact = code.Holds(patch->address, patch->patched);
    std::vector<uint8_t> restored = patch->original;
    if (is_jump) restored.front() = kBreakpointByte;
    if (intact) PROBED_RETURN_IF_ERROR(code.Write(patch->address, restored));
    if (is_jump) is_ours = intact;
  }
  optimization_ = nullptr;
  if (is_ours) return {};
  CountArmed(-1);
  ChangeReferenceCounter(code.stopped(), -1);
  return SiteError("SITE_OVERWRITTEN",
                   fmt::format("the jump at {:#x} is not ours any more", address_.value));
}

Status Site::Verify(tracee::CodeMemory& code) const {
  PROBED_TRY(uint8_t present, ReadByte(code, address_));
  if (present == instruction_.bytes[0]) return {};
  return SiteError("SITE_NOT_RESTORED",
                   fmt::format("the byte at {:#x} is {:#04x} instead of {:#04x}", address_.value,
                               present, instruction_.bytes[0]));
}

}  // namespace probed::probe
