#pragma once
// One accepted definition, its options and its counters. Shared by every process of its root target
// and by the returns that are still outstanding. Tracer thread only, but for what is const.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "elf/file.h"
#include "engine/event/event.h"
#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/filter.h"
#include "engine/probe/mechanism.h"
#include "engine/ring/sampling.h"

namespace probed::probe {

struct ProbeOptions {
  lang::FetchLimits limits;
  uint32_t max_active = 0;  // outstanding returns at once, over all threads
  bool force = false;       // the offset may be inside an instruction
  bool optimize = true;     // a jump may take the breakpoint's place
  bool at_ret = false;      // a return probe stands on its function's ret instructions
};

// Which hits of a probe are recorded; the others are counted only.
struct Selection {
  std::shared_ptr<const lang::Filter> filter;  // null: every hit passes
  ring::Sampling sampling{};                   // of those that pass

  bool operator==(const Selection&) const = default;
};

// What filters know as common_type.
constexpr uint16_t EventId(event::ProbeId id) {
  return static_cast<uint16_t>(id);
}

struct ProbeGroup;

struct Probe {
  event::ProbeId id = 0;
  lang::Dialect dialect = lang::Dialect::kExtended;
  lang::DefinitionId definition_id = 0;
  std::shared_ptr<const lang::Definition> definition;
  std::shared_ptr<const lang::EventSchema> schema;
  ProbeOptions options;
  std::weak_ptr<ProbeGroup> group;

  // What it was defined in. As long as it is open its inode number is given to no other file.
  std::shared_ptr<const elf::File> file;
  std::vector<uint8_t> code;  // at its place when it was defined
  // File offsets where its function returns, if it is not to hijack a return address.
  std::vector<uint64_t> return_instructions;
  std::string unseen_returns;  // how its function is left without them, in words

  bool enabled = true;
  Selection selection;
  ring::SamplingState
      sampling_state;        // at traps; each detour has its own, handed over with the site
  uint32_t sites = 0;        // armed sites that carry it, over all processes
  bool was_armed = false;    // tells gone from pending
  uint32_t outstanding = 0;  // returns waited for
  std::string remark;        // how its symbol was found, if that is worth a word
  std::string obstacle;      // why it could not be armed where its file is mapped
  ProbeCounters counters;

  bool is_return() const { return definition->kind == lang::ProbeKind::kReturn; }
  bool hijacks() const { return is_return() && return_instructions.empty(); }
  ProbeState state() const {
    if (!enabled) return ProbeState::kDisabled;
    if (sites > 0) return ProbeState::kArmed;
    return was_armed ? ProbeState::kGone : ProbeState::kPending;
  }
};

}  // namespace probed::probe
