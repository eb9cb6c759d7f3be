#include "engine/lang/definition_set.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "engine/lang/deletion.h"
#include "engine/lang/judge.h"
#include "engine/lang/line.h"

namespace probed::lang {
namespace {

using EventKey = std::pair<std::string, std::string>;            // group, event
using PlaceKey = std::tuple<uint64_t, uint64_t, int, uint64_t>;  // device, inode, process, offset

EventKey EventOf(const Definition& definition) {
  return {definition.group, definition.event};
}

PlaceKey PlaceOf(const Definition& definition) {
  return {definition.device, definition.inode, definition.process, definition.offset};
}

Refusal Refuse(RefusalCode code, int error_number, size_t token = 0) {
  return {code, error_number, token, 0, {}, {}, {}};
}

// Bitfields compare by their container: their shape is not part of the event's format.
ArgType Comparable(ArgType type) {
  type.bit_width = 0;
  type.bit_offset = 0;
  return type;
}

// The first argument that differs, counted from 0, or nothing. A missing one differs.
std::optional<size_t> FirstDifference(const EventSchema& a, const EventSchema& b) {
  if (a.fields.size() != b.fields.size()) return std::min(a.fields.size(), b.fields.size());
  for (size_t i = 0; i < a.fields.size(); ++i) {
    const bool same = a.fields[i].name == b.fields[i].name &&
                      Comparable(a.fields[i].type) == Comparable(b.fields[i].type);
    if (!same) return i;
  }
  return std::nullopt;
}

}  // namespace

struct DefinitionSet::State {
  Dialect dialect;
  ForeignEvents foreign_events;
  DefinitionId next_id = 1;
  std::map<DefinitionId, std::shared_ptr<const JudgedLine>> lines;
  std::map<EventKey, std::vector<DefinitionId>> events;
  std::map<PlaceKey, std::vector<DefinitionId>> places;
  std::set<EventKey> enabled;

  std::optional<Refusal> Conflict(const JudgedLine& line) const;
  std::optional<Refusal> AppendConflict(const JudgedLine& line,
                                        const std::vector<DefinitionId>& probes) const;
  DefinitionId Add(JudgedLine line);
  void Remove(DefinitionId id);
  Applied Define(const std::vector<std::string>& tokens, FileNamespace& files,
                 Dialect line_dialect);
  Applied Delete(const std::vector<std::string>& tokens);
};

// In the kernel's order: reference counter, kind, arguments, same probe, foreign name.
std::optional<Refusal> DefinitionSet::State::Conflict(const JudgedLine& line) const {
  const Definition& definition = line.definition;
  // All probes of a place agree, so one stands for all.
  const auto place = places.find(PlaceOf(definition));
  if (place != places.end() &&
      lines.at(place->second.front())->definition.ref_ctr_offset != definition.ref_ctr_offset) {
    return Refuse(RefusalCode::kRefctrConflict, EINVAL);
  }
  const auto event = events.find(EventOf(definition));
  if (event != events.end()) return AppendConflict(line, event->second);
  if (foreign_events && foreign_events(definition.group, definition.event)) {
    return Refuse(RefusalCode::kEventExist, EEXIST);
  }
  return std::nullopt;
}

std::optional<Refusal> DefinitionSet::State::AppendConflict(
    const JudgedLine& line, const std::vector<DefinitionId>& probes) const {
  const Definition& first = lines.at(probes.front())->definition;
  if (first.kind != line.definition.kind) return Refuse(RefusalCode::kDiffProbeType, EEXIST);
  if (const auto index = FirstDifference(line.definition.schema, first.schema)) {
    return Refuse(RefusalCode::kDiffArgType, EEXIST, 2 + *index);
  }
  const bool is_same = std::any_of(probes.begin(), probes.end(), [&](DefinitionId id) {
    const JudgedLine& other = *lines.at(id);
    return PlaceOf(other.definition) == PlaceOf(line.definition) &&
           other.argument_texts == line.argument_texts;
  });
  if (is_same) return Refuse(RefusalCode::kSameProbe, EEXIST);
  return std::nullopt;
}

DefinitionId DefinitionSet::State::Add(JudgedLine line) {
  const DefinitionId id = next_id++;
  events[EventOf(line.definition)].push_back(id);
  places[PlaceOf(line.definition)].push_back(id);
  lines.emplace(id, std::make_shared<const JudgedLine>(std::move(line)));
  return id;
}

void DefinitionSet::State::Remove(DefinitionId id) {
  const auto drop = [id](auto& index, const auto& key) {
    const auto found = index.find(key);
    std::erase(found->second, id);
    if (found->second.empty()) index.erase(found);
  };
  const std::shared_ptr<const JudgedLine> line = lines.at(id);
  const Definition& definition = line->definition;
  drop(events, EventOf(definition));
  drop(places, PlaceOf(definition));
  if (!events.contains(EventOf(definition))) enabled.erase(EventOf(definition));
  lines.erase(id);
}

DefinitionSet::Applied DefinitionSet::State::Define(const std::vector<std::string>& tokens,
                                                    FileNamespace& files, Dialect line_dialect) {
  auto line = JudgeDefinition(tokens, line_dialect, files);
  if (!line.ok()) return {MakeVerdict(line.error(), tokens), {}, {}};
  if (const auto conflict = Conflict(*line)) return {MakeVerdict(*conflict, tokens), {}, {}};
  Applied applied;
  applied.verdict.ok = true;
  applied.verdict.command = JoinTokens(tokens);
  applied.verdict.readback = {line->definition.readback};
  applied.added = Add(std::move(*line));
  return applied;
}

// Probes go one by one; the first that cannot stops it, and those before stay removed.
DefinitionSet::Applied DefinitionSet::State::Delete(const std::vector<std::string>& tokens) {
  const auto deletion = ParseDeletion(tokens);
  if (!deletion.ok()) return {MakeVerdict(deletion.error(), tokens), {}, {}};
  std::vector<DefinitionId> matches;
  for (const auto& [id, line] : lines) {
    if (Matches(*deletion, *line)) matches.push_back(id);
  }
  if (matches.empty()) {
    return {MakeVerdict(Refuse(RefusalCode::kNoSuchEvent, ENOENT), tokens), {}, {}};
  }
  Applied applied;
  applied.verdict.ok = true;
  applied.verdict.command = JoinTokens(tokens);
  for (const DefinitionId id : matches) {
    if (enabled.contains(EventOf(lines.at(id)->definition))) {
      applied.verdict = MakeVerdict(Refuse(RefusalCode::kEventBusy, EBUSY), tokens);
      break;
    }
    Remove(id);
    applied.removed.push_back(id);
  }
  return applied;
}

DefinitionSet::DefinitionSet(Dialect dialect, ForeignEvents foreign_events)
    : state_(std::make_unique<State>()) {
  state_->dialect = dialect;
  state_->foreign_events = std::move(foreign_events);
}

DefinitionSet::~DefinitionSet() = default;
DefinitionSet::DefinitionSet(DefinitionSet&&) noexcept = default;
DefinitionSet& DefinitionSet::operator=(DefinitionSet&&) noexcept = default;

DefinitionSet::Applied DefinitionSet::Apply(std::string_view line, FileNamespace& files) {
  return Apply(line, files, state_->dialect);
}

DefinitionSet::Applied DefinitionSet::Apply(std::string_view line, FileNamespace& files,
                                            Dialect dialect) {
  const bool is_bad = line.size() >= kWriteBuffer || line.find('\n') != std::string_view::npos ||
                      line.find('\0') != std::string_view::npos;
  if (is_bad) return {MakeVerdict(Refuse(RefusalCode::kBadLine, EINVAL), {}), {}, {}};
  const std::vector<std::string> tokens = Tokenize(line);
  if (tokens.empty()) {
    Applied applied;
    applied.verdict.ok = true;
    return applied;
  }
  // Only the very first byte makes a deletion; after a blank it is an unknown kind.
  if (line.front() == '-') return state_->Delete(tokens);
  return state_->Define(tokens, files, dialect);
}

std::shared_ptr<const Definition> DefinitionSet::Find(DefinitionId id) const {
  const auto found = state_->lines.find(id);
  if (found == state_->lines.end()) return nullptr;
  return {found->second, &found->second->definition};
}

std::vector<DefinitionId> DefinitionSet::ids() const {
  std::vector<DefinitionId> ids;
  ids.reserve(state_->lines.size());
  for (const auto& [id, line] : state_->lines)
    ids.push_back(id);
  return ids;
}

bool DefinitionSet::Remove(DefinitionId id) {
  if (!state_->lines.contains(id)) return false;
  state_->Remove(id);
  return true;
}

void DefinitionSet::SetEventEnabled(const std::string& group, const std::string& event,
                                    bool enabled) {
  if (enabled) {
    state_->enabled.insert({group, event});
  } else {
    state_->enabled.erase({group, event});
  }
}

}  // namespace probed::lang
